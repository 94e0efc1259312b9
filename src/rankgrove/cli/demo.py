"""``rankgrove demo``: the main job on data that it makes itself, and a report of it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rankgrove.data.queries import QueryDataset

MEASURE = "ndcg@10"


def demo(
    folder: Annotated[Path, typer.Option(help="Where to put what it makes.")] = Path("demo"),
    queries: Annotated[int, typer.Option(min=20, help="Number of training queries.")] = 1000,
    trees: Annotated[int, typer.Option(min=1, help="Number of LambdaMART's trees.")] = 300,
) -> None:
    """Train four rankers on the papers' artificial data, combine two of them, and report."""
    import rankgrove as rg

    folder.mkdir(parents=True, exist_ok=True)
    typer.echo("Generating the papers' artificial data ...")
    train, vali, test = (_data(folder, *one) for one in _parts(queries))
    typer.echo(f"{folder / 'train.txt'}: {train!r}\n")

    rankers = {
        "LambdaMART": rg.LambdaMART(MEASURE, n_trees=trees, n_leaves=10, early_stopping=50),
        "McRank": rg.McRank(n_trees=max(1, trees // 5), early_stopping=20),
        "LambdaRank": rg.LambdaRank(MEASURE, n_epochs=30, early_stopping=10),
        "SVM-map": rg.SVMMap(C=(0.01, 0.1, 1.0)),
    }
    models: dict[str, Any] = {}
    typer.echo(f"{'':<22}  {MEASURE} on {test.n_queries:,} test queries\n")
    for name, ranker in rankers.items():
        start = time.perf_counter()
        models[name] = ranker.fit(train, valid=vali)
        took = time.perf_counter() - start
        _line(name, models[name], test, f"trained in {took:.1f} s, with compiling kernels")
    best = rg.optimal_combination(models["LambdaMART"], models["McRank"], vali, MEASURE)
    models["LambdaMART + McRank"] = best.ranker
    _line(
        "LambdaMART + McRank",
        best.ranker,
        test,
        f"the best of all weights on validation data: {best.alpha:.3g} of McRank",
    )
    for name, model in models.items():
        model.save(folder / _file(name))

    typer.echo("\nMaking the report ...")
    page = folder / "report.html"
    made = rg.report(models, test, out=page, valid={"validation": vali}, title="rankgrove demo")
    typer.echo(made.summary)
    one, both = folder / _file("LambdaMART"), folder / _file("LambdaMART + McRank")
    typer.echo(
        "\nTry next:\n"
        f"  rankgrove evaluate {folder}/test.txt --model {both} --convention letor\n"
        f"  rankgrove explain {one} {folder}/test.txt --query 1\n"
        f"  rankgrove train {folder}/train.txt --valid {folder}/vali.txt --measure map "
        f"--set n_trees=100 --model {folder}/map.rg\n"
        f"  rankgrove report {one} --against {folder}/map.rg --data {folder}/test.txt\n"
        "  rankgrove --help\n"
        f"\nOpen the report in a browser: {page.resolve()}"
    )


def _parts(queries: int) -> list[tuple[str, int, int]]:
    return [("train", queries, 1), ("vali", queries // 2, 2), ("test", queries // 2, 3)]


def _data(folder: Path, part: str, n_queries: int, seed: int) -> QueryDataset:
    """Write data as a LETOR file, and read it as one."""
    import rankgrove as rg

    path = folder / f"{part}.txt"
    rg.write_letor(rg.make_artificial(n_queries, seed=seed), path)
    return rg.read_letor(path)


def _file(name: str) -> str:
    return name.lower().replace(" + ", "-") + ".rg"


def _line(name: str, model: Any, test: QueryDataset, note: str) -> None:
    import rankgrove as rg

    typer.echo(f"{name:<22}  {rg.evaluate(model, test, MEASURE).mean[MEASURE]:.4f}   {note}")
