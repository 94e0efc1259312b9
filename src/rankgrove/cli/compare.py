"""``rankgrove compare``: is one system significantly better than another?"""

from __future__ import annotations

import warnings
from typing import Annotated

import typer

from rankgrove.cli.options import (
    JsonFile,
    JudgedData,
    MissingQueries,
    Qrels,
    Reading,
    RunConvention,
    Systems,
    Threads,
    Unjudged,
    default_convention,
    reads_data,
)
from rankgrove.errors import ParameterError


@reads_data("base_score", "strict")
def compare(
    data: JudgedData = None,
    system: Systems = None,
    qrels: Qrels = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            "-m",
            help="Measure to compare by; repeat for several.",
            show_default="ndcg@10",
        ),
    ] = None,
    convention: RunConvention = "",
    missing_queries: MissingQueries = "zero",
    unjudged: Unjudged = "irrelevant",
    all_pairs: Annotated[
        bool,
        typer.Option("--all-pairs", help="Compare all pairs of systems, not only with the first."),
    ] = False,
    samples: Annotated[
        int, typer.Option(min=100, help="Number of samples of the randomisation test.")
    ] = 100_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the randomisation test.")] = 0,
    json_file: JsonFile = None,
    *,
    reading: Reading,
    threads: Threads = None,
) -> None:
    """Compare systems query by query: wins, losses, t-test, Wilcoxon test, randomisation test.

    Examples:

    rankgrove compare test.txt -s bm25=feature:25 -s new=web.rg -m ndcg@10

    rankgrove compare --qrels qrels.txt -s bm25=bm25.run -s lm=lm.run -m map -m ndcg@10

    rankgrove compare --qrels qrels.txt -s bm25=bm25.run -s lm=lm.run --unjudged condensed
    """
    import rankgrove as rg
    from rankgrove.cli.inputs import check_measures, load_systems, parse_sources
    from rankgrove.cli.outputs import check_outputs, say_written

    convention = convention or default_convention(qrels)
    measures = measure or ["ndcg@10"]
    check_measures(measures, convention)
    sources = parse_sources(system or [], is_run=qrels is not None)
    if len(sources) < 2:
        raise ParameterError(
            "Name at least two systems, as in -s bm25=feature:25 -s new=web.rg; the first is the "
            "baseline."
        )
    if (qrels is None) == (not data):
        raise ParameterError("Give either the judged data or --qrels.")
    files = [source.file for source in sources.values()]
    check_outputs({"--out": json_file}, [*(data or []), qrels, *files])
    systems, judged = load_systems(sources, data or [], qrels, reading)
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # the table says it
        result = rg.compare(
            systems,
            judged,
            measures[0] if len(measures) == 1 else measures,
            convention,
            missing_queries=missing_queries,
            unjudged=unjudged,
            against="all" if all_pairs else "first",
            n_samples=samples,
            seed=seed,
            n_threads=threads,
        )
    if json_file is not None:
        result.to_json(json_file)
    typer.echo(str(result))
    say_written(json_file)
