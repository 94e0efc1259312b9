"""``rankgrove demo``: the main job on data that it makes itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    folder: Annotated[Path, typer.Option(help="Where to put what it makes.")] = Path("demo"),
    queries: Annotated[int, typer.Option(min=20, help="Number of queries.")] = 2000,
) -> None:
    """Generate the papers' artificial data and evaluate single features as rankers."""
    import rankgrove as rg

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "test.txt.gz"
    typer.echo(f"Generating {queries:,} queries of the papers' artificial data ...")
    rg.write_letor(rg.make_artificial(queries, seed=1), path)
    data = rg.read_letor(path)
    typer.echo(f"{path}: {data!r}\n")

    typer.echo("Ranking by each single feature, up and down ...")
    found = {}
    for number in range(1, data.n_features + 1):
        column = data.column(number).astype(float)
        for name, scores in ((f"+f{number}", column), (f"-f{number}", -column)):
            found[name] = rg.evaluate(scores, data, "ndcg@10").mean["ndcg@10"]
    best = sorted(found, key=lambda name: -found[name])[:3]
    systems = {name: _signed(data.column(name[1:]), name[0]) for name in best}
    typer.echo(f"\nThe best of them, {best[0]}:\n")
    typer.echo(
        str(rg.evaluate(systems[best[0]], data, ["ndcg@1", "ndcg@3", "ndcg@10", "map", "err"]))
    )
    typer.echo("\nIs it better than the next two?\n")
    typer.echo(str(rg.compare(systems, data, "ndcg@10")))
    typer.echo(
        "\nTry next:\n"
        f"  rankgrove evaluate {path} --feature {best[0][1:]} -m map --convention letor\n"
        f"  rankgrove compare {path} -s a=feature:1 -s b=feature:2 -m map\n"
        "  rankgrove generate web --queries 100 --out web.txt\n"
        "  rankgrove --help"
    )


def _signed(column: object, sign: str) -> object:
    return column if sign == "+" else -column  # type: ignore[operator]
