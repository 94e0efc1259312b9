"""``rankgrove demo``: the main job on data that it makes itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

MEASURES = ["ndcg@1", "ndcg@3", "ndcg@10", "map", "err"]


def demo(
    folder: Annotated[Path, typer.Option(help="Where to put what it makes.")] = Path("demo"),
    queries: Annotated[int, typer.Option(min=20, help="Number of training queries.")] = 2000,
    trees: Annotated[int, typer.Option(min=1, help="Number of trees.")] = 300,
) -> None:
    """Generate the papers' artificial data, train LambdaMART on it and evaluate it."""
    import rankgrove as rg

    folder.mkdir(parents=True, exist_ok=True)
    typer.echo("Generating the papers' artificial data ...")
    paths = {}
    for seed, (part, n) in enumerate(
        [("train", queries), ("vali", queries // 2), ("test", queries // 2)], 1
    ):
        paths[part] = folder / f"{part}.txt"
        rg.write_letor(rg.make_artificial(n, seed=seed), paths[part])
    train, vali, test = (rg.read_letor(path) for path in paths.values())
    typer.echo(f"{paths['train']}: {train!r}\n")

    model = rg.LambdaMART(
        "ndcg@10", n_trees=trees, n_leaves=10, early_stopping=50, progress=True
    ).fit(train, valid=vali)
    model_path = folder / "model.rg"
    model.save(model_path)
    typer.echo(model.summary(5))

    typer.echo("\nOn test queries:\n")
    typer.echo(str(rg.evaluate(model, test, MEASURES)))
    best = max(
        range(1, test.n_features + 1),
        key=lambda f: rg.evaluate(train.column(f), train, "ndcg@10").mean["ndcg@10"],
    )
    typer.echo(f"\nAgainst the best single feature, f{best}:\n")
    systems = {f"f{best}": test.column(best), "LambdaMART": model}
    typer.echo(str(rg.compare(systems, test, "ndcg@10")))
    typer.echo(
        "\nTry next:\n"
        f"  rankgrove evaluate {paths['test']} --model {model_path} --convention letor\n"
        f"  rankgrove rank {paths['test']} --model {model_path} --out {folder}/scores.txt\n"
        f"  rankgrove train {paths['train']} --valid {paths['vali']} --measure map "
        f"--set n_trees=100 --model {folder}/map.rg\n"
        "  rankgrove params\n"
        "  rankgrove --help"
    )
