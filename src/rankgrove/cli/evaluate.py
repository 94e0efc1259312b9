"""``rankgrove evaluate``: figures for scores, a feature, or a TREC run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankgrove.cli.options import (
    DEFAULT_MEASURES,
    BaseScore,
    Cache,
    DocidColumn,
    FeatureColumns,
    JsonFile,
    LabelColumn,
    QidColumn,
    Qrels,
    RunConvention,
    Threads,
    ZeroBased,
)
from rankgrove.errors import ParameterError


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
    label: LabelColumn = "label",
    qid: QidColumn = "qid",
    docid: DocidColumn = None,
    features: FeatureColumns = None,
    base_score: BaseScore = None,
    cache: Cache = False,
    zero_based: ZeroBased = False,
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
    from rankgrove.cli.inputs import check_outputs, load_dataset, load_system

    measures = measure or list(DEFAULT_MEASURES)
    convention = convention or ("papers" if qrels is None else "trec")
    read = [*(data or []), model, scores, run, qrels]
    check_outputs({"--per-query": per_query, "--json": json_file}, read)
    for spec in measures:  # a mistyped name should not cost the reading of the data
        rg.measure(spec, convention)
    if run is not None or qrels is not None:
        if run is None or qrels is None or data or scores or feature or model:
            raise ParameterError("A TREC run is evaluated by --run and --qrels together, alone.")
        judged = rg.read_qrels(qrels)
        result = rg.evaluate(rg.read_run(run), judged, measures, convention, n_threads=threads)
    else:
        if not data:
            raise ParameterError(
                "Give the judged data, as in 'rankgrove evaluate test.txt --scores scores.txt', "
                "or a run with --run and --qrels."
            )
        sources = [f"model:{model}" if model else "", f"feature:{feature}" if feature else ""]
        sources = [source for source in [*sources, str(scores or "")] if source]
        if len(sources) != 1:
            raise ParameterError(
                "Say what to measure: one of --model FILE, --scores FILE or --feature N."
            )
        trained = rg.load(model) if model else None
        dataset = load_dataset(
            data,
            label=label,
            qid=qid,
            docid=docid,
            features=features,
            base_score=base_score,
            cache=cache,
            zero_based=zero_based,
            models=[trained] if trained else [],
        )
        system = trained or load_system(sources[0], dataset, is_run=False)
        result = rg.evaluate(system, dataset, measures, convention, n_threads=threads)
    if per_query is not None:
        result.to_csv(per_query)
    if json_file is not None:
        result.to_json(json_file)
    typer.echo(str(result))
