"""``rankgrove compare``: whether one system is better than another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rankgrove.cli.options import JsonFile, Qrels, Reading, RunConvention, Threads, reads_data
from rankgrove.errors import ParameterError


@reads_data("base_score")
def compare(
    data: Annotated[
        list[Path] | None,
        typer.Argument(help="Judged data: LETOR files (plain or gzip), or one CSV/parquet file."),
    ] = None,
    system: Annotated[
        list[str] | None,
        typer.Option(
            "--system",
            "-s",
            help="NAME=SOURCE, twice or more. SOURCE is model:FILE, feature:N (number or "
            "name; documents where it is missing come last), a file with one score a line, or "
            "with --qrels a TREC run. The first system is the baseline.",
        ),
    ] = None,
    qrels: Qrels = None,
    measure: Annotated[
        str, typer.Option("--measure", "-m", help="What to compare by.")
    ] = "ndcg@10",
    convention: RunConvention = "",
    all_pairs: Annotated[
        bool, typer.Option("--all-pairs", help="Compare every pair, not only with the first.")
    ] = False,
    samples: Annotated[
        int, typer.Option(min=100, help="Samples of the randomisation test.")
    ] = 100_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the randomisation test.")] = 0,
    json_file: JsonFile = None,
    *,
    reading: Reading,
    threads: Threads = None,
) -> None:
    """Compare systems query by query: wins and losses, t-test, Wilcoxon, randomisation.

    Examples:

    rankgrove compare test.txt -s bm25=feature:25 -s new=scores.txt -m ndcg@10

    rankgrove compare --qrels qrels.txt -s bm25=bm25.run -s lm=lm.run -m map
    """
    import rankgrove as rg
    from rankgrove.cli.outputs import check_outputs

    convention = convention or ("papers" if qrels is None else "trec")
    rg.measure(measure, convention)
    sources = _named(system or [])
    if (qrels is None) == (not data):
        raise ParameterError("Give either the judged data or --qrels.")
    files = [Path(source.removeprefix("model:")) for source in sources.values()]
    check_outputs({"--json": json_file}, [*(data or []), qrels, *files])
    systems, judged = _systems(sources, data or [], qrels, reading)
    result = rg.compare(
        systems,
        judged,
        measure,
        convention,
        against="all" if all_pairs else "first",
        n_samples=samples,
        seed=seed,
        n_threads=threads,
    )
    if json_file is not None:
        result.to_json(json_file)
    typer.echo(str(result))


def _systems(
    sources: dict[str, str], data: list[Path], qrels: Path | None, reading: Reading
) -> tuple[dict[str, Any], Any]:
    """Return the systems by name, in the order given, and the judged data."""
    import rankgrove as rg
    from rankgrove.cli.inputs import load_models, load_system

    # Models come first: they say how many features the data has.
    models = load_models(sources) if qrels is None else {}
    judged: Any = (
        reading.load(data, models=models.values()) if qrels is None else rg.read_qrels(qrels)
    )
    systems = {
        name: models[name]
        if name in models
        else load_system(source, judged, is_run=qrels is not None)
        for name, source in sources.items()
    }
    return systems, judged


def _named(items: list[str]) -> dict[str, str]:
    named: dict[str, str] = {}
    for item in items:
        name, equals, source = item.partition("=")
        if not equals or not name or not source:
            raise ParameterError(
                f"Write a system as NAME=SOURCE, as in bm25=feature:25. Got {item!r}."
            )
        if name in named:
            raise ParameterError(f"Two systems are named {name!r}: give each its own name.")
        named[name] = source
    if len(named) < 2:
        raise ParameterError("Name at least two systems, each as --system NAME=SOURCE.")
    return named
