"""``rankgrove evaluate``: measures of a model, of scores, of a feature or of a TREC run."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from rankgrove.cli.options import (
    DEFAULT_MEASURES,
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
def evaluate(
    data: JudgedData = None,
    system: Systems = None,
    qrels: Qrels = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            "-m",
            help="Measure to compute; repeat for several. For instance ndcg@10, map, err, mrr, "
            "p@5, recall@20, dcg@5, meanndcg, auc, pairs, accuracy, rprec, success@5, f1@10, rbp, "
            "pfound, gmap, bpref, infap, judged@10, kendall, spearman.",
            show_default=" ".join(DEFAULT_MEASURES),
        ),
    ] = None,
    convention: RunConvention = "",
    missing_queries: MissingQueries = "zero",
    unjudged: Unjudged = "irrelevant",
    per_query: Annotated[
        Path | None, typer.Option(help="Also write the values of every query to this CSV file.")
    ] = None,
    json_file: JsonFile = None,
    *,
    model: Annotated[str | None, typer.Option(hidden=True)] = None,
    scores: Annotated[str | None, typer.Option(hidden=True)] = None,
    feature: Annotated[str | None, typer.Option(hidden=True)] = None,
    run: Annotated[str | None, typer.Option(hidden=True)] = None,
    reading: Reading,
    threads: Threads = None,
) -> None:
    """Evaluate one ranking: that of a model, of scores in a file, of a feature, or a TREC run.

    Examples:

    rankgrove evaluate test.txt -s web.rg

    rankgrove evaluate test.txt -s scores.txt -m ndcg@10 -m map --convention letor

    rankgrove evaluate test.txt -s feature:25

    rankgrove evaluate --qrels qrels.txt -s bm25.run -m map -m p@10

    rankgrove evaluate --qrels qrels.txt -s bm25.run -m ndcg@10 --unjudged bounds
    """
    import rankgrove as rg
    from rankgrove.cli.inputs import check_measures, hint, load_systems, parse_source
    from rankgrove.cli.outputs import check_outputs, say_written

    measures = measure or list(DEFAULT_MEASURES)
    convention = convention or default_convention(qrels)
    check_measures(measures, convention)
    if (qrels is None) == (not data):
        raise ParameterError(
            "Give the judged data, as in 'rankgrove evaluate test.txt -s web.rg', or --qrels and a "
            "TREC run, as in 'rankgrove evaluate --qrels qrels.txt -s bm25.run'."
        )
    kinds = {"model": model, "scores": scores, "feature": feature, "run": run}
    old = {kind: value for kind, value in kinds.items() if value}
    text = _system(system or [], old)
    source = parse_source(text, is_run=qrels is not None)
    inputs = [*(data or []), source.file, qrels]
    check_outputs({"--per-query": per_query, "--out": json_file}, inputs)
    systems, judged = load_systems({source.name: source}, data or [], qrels, reading)
    (ranked,) = systems.values()
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # the table says it
        result = rg.evaluate(
            ranked,
            judged,
            measures,
            convention,
            missing_queries=missing_queries,
            unjudged=unjudged,
            n_threads=threads,
        )
    if per_query is not None:
        result.to_csv(per_query)
    if json_file is not None:
        result.to_json(json_file)
    typer.echo(str(result))
    say_written(per_query, json_file)
    for kind, value in old.items():
        hint(f"--{kind} {value}", f"-s {text if kind == 'feature' else value}")


def _system(systems: list[str], old: dict[str, str]) -> str:
    """Return the system to evaluate; `old` are old options, each named after a kind of system."""
    texts = [*systems, *(f"{kind}:{value}" for kind, value in old.items())]
    if len(texts) > 1:
        raise ParameterError(
            f"evaluate measures one system. Got {len(texts)}: compare them with "
            "'rankgrove compare', or leave out all but one."
        )
    if not texts:
        raise ParameterError(
            "Say what to measure: -s FILE (a model, or one score per line) or -s feature:N; with "
            "--qrels, -s RUN."
        )
    return texts[0]
