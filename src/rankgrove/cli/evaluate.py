"""``rankgrove evaluate``: figures for scores, a feature, or a TREC run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rankgrove.cli.options import (
    DEFAULT_MEASURES,
    JsonFile,
    Qrels,
    Reading,
    RunConvention,
    Threads,
    reads_data,
)
from rankgrove.errors import ParameterError


@reads_data("base_score")
def evaluate(
    data: Annotated[
        list[Path] | None,
        typer.Argument(help="Judged data: LETOR files (plain or gzip), or one CSV/parquet file."),
    ] = None,
    model: Annotated[Path | None, typer.Option(help="A trained model to rank by.")] = None,
    scores: Annotated[
        Path | None, typer.Option(help="File with one score a line, in the data's row order.")
    ] = None,
    feature: Annotated[
        str | None,
        typer.Option(
            help="Rank by one feature: its number (from 1) or name. Documents where it is missing "
            "come last."
        ),
    ] = None,
    run: Annotated[Path | None, typer.Option(help="A TREC run; needs --qrels.")] = None,
    qrels: Qrels = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            "-m",
            help="What to measure; repeat for several. Such as ndcg@10, map, err, mrr, p@5, "
            "recall@20, dcg@5, meanndcg, auc, pairs, accuracy.",
            show_default=" ".join(DEFAULT_MEASURES),
        ),
    ] = None,
    convention: RunConvention = "",
    per_query: Annotated[
        Path | None, typer.Option(help="Also write every query's values to this CSV file.")
    ] = None,
    json_file: JsonFile = None,
    *,
    reading: Reading,
    threads: Threads = None,
) -> None:
    """Measure a ranking: a model's, scores from a file, one feature, or a TREC run.

    Examples:

    rankgrove evaluate test.txt --model web.rg

    rankgrove evaluate test.txt --scores scores.txt -m ndcg@10 -m map --convention letor

    rankgrove evaluate test.txt --feature 25

    rankgrove evaluate --run bm25.run --qrels qrels.txt -m map -m p@10
    """
    import rankgrove as rg
    from rankgrove.cli.inputs import check_measures
    from rankgrove.cli.outputs import check_outputs

    measures = measure or list(DEFAULT_MEASURES)
    convention = convention or ("papers" if qrels is None else "trec")
    read = [*(data or []), model, scores, run, qrels]
    check_outputs({"--per-query": per_query, "--json": json_file}, read)
    check_measures(measures, convention)
    if run is not None or qrels is not None:
        if run is None or qrels is None or data or scores or feature or model:
            raise ParameterError("A TREC run is evaluated by --run and --qrels together, alone.")
        system, judged = rg.read_run(run), rg.read_qrels(qrels)
    else:
        system, judged = _system(data or [], model, scores, feature, reading)
    result = rg.evaluate(system, judged, measures, convention, n_threads=threads)
    if per_query is not None:
        result.to_csv(per_query)
    if json_file is not None:
        result.to_json(json_file)
    typer.echo(str(result))


def _system(
    data: list[Path],
    model: Path | None,
    scores: Path | None,
    feature: str | None,
    reading: Reading,
) -> tuple[Any, Any]:
    """Return what is to be measured, and the judged data to measure it on."""
    from rankgrove.cli.inputs import load_system
    from rankgrove.rankers.load import load

    if not data:
        raise ParameterError(
            "Give the judged data, as in 'rankgrove evaluate test.txt --scores scores.txt', "
            "or a run with --run and --qrels."
        )
    given = [bool(model), bool(scores), bool(feature)]
    if sum(given) != 1:
        raise ParameterError(
            "Say what to measure: one of --model FILE, --scores FILE or --feature N."
        )
    if model is not None:
        trained = load(model)
        return trained, reading.load(data, models=[trained])
    judged = reading.load(data)
    source = f"feature:{feature}" if feature else str(scores)
    return load_system(source, judged, is_run=False), judged
