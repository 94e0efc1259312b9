"""``rankgrove clicks``: click logs, from their summary to training data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankgrove.cli.click_logs import LogFile, LogReading, notes, reads_log
from rankgrove.cli.grammar import Command, Group
from rankgrove.cli.options import JsonFile, Reading, Threads, reads_data
from rankgrove.errors import DataError, ParameterError

if TYPE_CHECKING:
    from rankgrove.clicks.log import ClickLog

clicks = typer.Typer(
    name="clicks",
    cls=Group,
    no_args_is_help=True,
    help="Learn from clicks: summarise, check, simulate and fit click logs, and make judgements or "
    "training data of them.",
)


class UserModel(StrEnum):
    """How simulated users click."""

    position_based = "position-based"
    trust_bias = "trust-bias"
    cascade = "cascade"
    dependent_click = "dependent-click"
    user_browsing = "user-browsing"
    simplified_dbn = "simplified-dbn"
    dbn = "dbn"


class Fitted(StrEnum):
    """A click model that is learned."""

    position_based = "position-based"
    cascade = "cascade"
    dependent_click = "dependent-click"
    user_browsing = "user-browsing"
    simplified_dbn = "simplified-dbn"
    dbn = "dbn"
    ctr = "ctr"
    coec = "coec"


_CLASSES = {
    Fitted.position_based: "PositionBased",
    Fitted.cascade: "Cascade",
    Fitted.dependent_click: "DependentClick",
    Fitted.user_browsing: "UserBrowsing",
    Fitted.simplified_dbn: "SimplifiedDBN",
    Fitted.dbn: "DBN",
    Fitted.ctr: "ClickThroughRate",
    Fitted.coec: "ClicksOverExpected",
}


class Labels(StrEnum):
    """Labels of judgements."""

    grades = "grades"
    soft = "soft"
    smoothed = "smoothed"


class Few(StrEnum):
    """What is done with documents of few impressions."""

    drop = "drop"
    pool = "pool"


class Missing(StrEnum):
    """What is done with impressions without features."""

    error = "error"
    drop = "drop"


BY_MODEL = (
    "positions are looked at differently for each of their values. For the model position-based"
)
Out = Annotated[Path, typer.Option("--out", "-o", help="File to write to.")]
LogOut = Annotated[
    Path,
    typer.Option("--out", "-o", help="File to write the log to: .csv, .tsv, .parquet or .arrow."),
]


def _write_json(path: Path | None, values: Any) -> None:
    from rankgrove.cli.outputs import say_written
    from rankgrove.files import write_atomically

    if path is not None:
        write_atomically(path, json.dumps(values, indent=1, ensure_ascii=False) + "\n")
        say_written(path)


def _check_out(command: str, out: Path | None, *inputs: Path | None) -> None:
    from rankgrove.cli.outputs import check_writable

    check_writable(f"clicks {command}", {"--out": out}, inputs)


def _check_log_out(out: Path) -> None:
    from rankgrove.data.file_kinds import TABLE_ENDINGS

    if not out.name.lower().endswith(TABLE_ENDINGS):
        raise ParameterError(
            f"The name of a click log must end in {', '.join(TABLE_ENDINGS)}. Got --out {out}."
        )


@clicks.command(cls=Command)
@reads_log()
def summary(
    log: LogFile,
    *,
    impressions: LogReading,
    out: JsonFile = None,
) -> None:
    """Print sizes, click-through rates by position, and what may be wrong with a log.

    Examples:

    rankgrove clicks summary clicks.csv

    rankgrove clicks summary ubi_events.ndjson --ubi ubi_queries.ndjson
    """
    _check_out("summary", out, log, impressions.ubi)
    found = impressions.load(log).summary()
    typer.echo(str(found))
    _write_json(out, found.as_dict() if out else None)


@clicks.command(cls=Command)
@reads_log()
def convert(
    log: LogFile,
    out: LogOut,
    *,
    impressions: LogReading,
) -> None:
    """Write a log under the usual names of columns, for commands without options to read logs.

    Examples:

    rankgrove clicks convert visits.csv --columns session=visit,click=clicked --out clicks.parquet

    rankgrove clicks convert ubi_events.ndjson --ubi ubi_queries.ndjson --no-bots --out clicks.csv

    rankgrove report test.txt -s web.rg --clicks clicks.parquet
    """
    from rankgrove.cli.outputs import say_written

    _check_log_out(out)
    _check_out("convert", out, log, impressions.ubi)
    read = impressions.load(log)
    read.write(out)
    typer.echo(str(read))
    say_written(out)


@clicks.command(cls=Command)
@reads_log("their values are checked one by one as well")
def check(
    log: LogFile,
    *,
    impressions: LogReading,
    out: JsonFile = None,
) -> None:
    """Say whether relevance and position bias can be told apart, and which methods are safe.

    Examples:

    rankgrove clicks check clicks.parquet

    rankgrove clicks check clicks.parquet --context device --out check.json
    """
    import rankgrove as rg
    from rankgrove.validation import counted

    _check_out("check", out, log, impressions.ubi)
    read = impressions.load(log)
    found = rg.check_clicks(read)
    typer.echo(str(found))
    values = found.as_dict()
    for name, part in _by_context(read):
        typer.echo(f"\n{name}:")
        try:
            of_part = rg.check_clicks(part)
        except DataError as error:
            typer.echo(f"{counted(part.n_sessions, 'session')}: {error}")
            continue
        typer.echo(str(of_part))
        values.setdefault("contexts", {})[name] = of_part.as_dict()
    _write_json(out, values if out else None)


def _by_context(log: ClickLog) -> Iterator[tuple[str, ClickLog]]:
    """Return the log of every context, with its name; nothing if the log has no contexts."""
    import numpy as np

    from rankgrove.data.positions import context_codes

    if not log.contexts:
        return
    columns = [np.array(context.names)[context.codes] for context in log.contexts.values()]
    codes, names = context_codes(columns, log.n_sessions)
    title = ", ".join(log.contexts)
    for code, name in enumerate(names):
        yield f"{title} = {name}", log.select(codes == code)


@clicks.command(cls=Command)
@reads_log(BY_MODEL)
def fit(
    log: LogFile,
    model: Annotated[list[Fitted] | None, typer.Option(
        "--model", "-m", help="Click model; repeat for several.", show_default="position-based"
    )] = None,
    held_out: Annotated[float, typer.Option(
        min=0.01, max=0.9, help="Share of the sessions on which perplexity is measured."
    )] = 0.2,
    samples: Annotated[int, typer.Option(
        min=0, help="Number of bootstrap samples for intervals; 0: none."
    )] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the split and the samples.")] = 0,
    *,
    impressions: LogReading,
    out: JsonFile = None,
    threads: Threads = None,
) -> None:  # fmt: skip
    """Fit click models; print their perplexity on held-out sessions, and what they learned.

    Examples:

    rankgrove clicks fit clicks.csv --model position-based --model user-browsing --model dbn

    rankgrove clicks fit clicks.csv --context device --samples 200
    """

    import numpy as np

    from rankgrove.clicks.summary import SHOWN_POSITIONS
    from rankgrove.validation import counted

    _check_out("fit", out, log, impressions.ubi)
    chosen = list(dict.fromkeys(model or [Fitted.position_based]))
    if Fitted.position_based not in chosen:
        _refuse_context(impressions.context, chosen[0])
    read = impressions.load(log)
    learn, test = read.split(held_out, seed)
    width = max(len(name.value) for name in chosen)
    results: dict[str, Any] = {}
    title = f"on {counted(test.n_sessions, 'held-out session')}"
    typer.echo(f"{'model':<{width}}  perplexity  log-likelihood per session ({title})")
    for name in chosen:
        fitted = _click_model(name, read, threads).fit(learn)
        value = fitted.perplexity(test).value
        likelihood = fitted.log_likelihood(test) / test.n_sessions
        typer.echo(f"{name.value:<{width}}  {value:10.4f}  {likelihood:.4f}")
        results[name.value] = {"perplexity": value, "log_likelihood": likelihood}
        if name is Fitted.position_based:
            results[name.value] |= _examination(fitted, learn, samples, seed)
        if name in (Fitted.dbn, Fitted.dependent_click):
            going = np.atleast_1d(fitted.continuation_)
            results[name.value]["continuation"] = going.tolist()
    for kind, result in results.items():
        if "continuation" in result:
            after = " after a click, by position" if kind == "dependent-click" else ""
            shown = " ".join(f"{value:.3f}" for value in result["continuation"][:SHOWN_POSITIONS])
            typer.echo(f"\n{kind}: users continue with probability{after} {shown}")
    for result in results.values():
        if "examination" in result:
            typer.echo(_examination_text(result))
    _write_json(out, results)


def _click_model(name: Fitted, log: ClickLog, threads: int | None) -> Any:
    """Return an untrained click model, for the contexts that were read."""
    import rankgrove as rg

    of_context: dict[str, Any] = {}
    if name is Fitted.position_based and log.contexts:
        of_context["context"] = list(log.contexts)
    return getattr(rg, _CLASSES[name])(n_threads=threads, **of_context)


def _refuse_context(context: str | None, model: Fitted) -> None:
    if context is not None and model is not Fitted.position_based:
        raise ParameterError(
            f"--context {context} is for --model position-based, and {model.value} has no "
            "examination by context. Leave it out."
        )


def _examination(fitted: Any, log: ClickLog, samples: int, seed: int) -> dict[str, Any]:
    """Return examination by position, with intervals if samples are wanted."""
    found: dict[str, Any] = {"examination": fitted.examination_.tolist()}
    if fitted.examination_.ndim == 2:
        found["contexts"] = list(fitted.context_names_)
    if samples:
        edges = fitted.intervals(log, n=max(samples, 2), seed=seed)
        found["low"] = edges.low["examination"].tolist()
        found["high"] = edges.high["examination"].tolist()
    return found


def _examination_text(result: dict[str, Any]) -> str:
    if "contexts" not in result:
        return _examination_table(result, "")
    tables = []
    for c, name in enumerate(result["contexts"]):
        part: dict[str, Any] = {
            key: result[key][c] for key in ("examination", "low", "high") if key in result
        }
        tables.append(_examination_table(part, name))
    return "\n".join(tables)


def _examination_table(result: dict[str, Any], context: str) -> str:
    lines = ["", f"{context}:"] if context else [""]
    lines.append("position  examination" + ("  95 % interval" if "low" in result else ""))
    for p, value in enumerate(result["examination"]):
        edges = f"  {result['low'][p]:.3f} - {result['high'][p]:.3f}" if "low" in result else ""
        lines.append(f"{p + 1:>8}  {value:>11.3f}{edges}")
    return "\n".join(lines)


@clicks.command(cls=Command)
@reads_log(BY_MODEL)
def judge(
    log: LogFile,
    out: Annotated[Path, typer.Option(
        "--out", "-o", help="File to write: qrels; a table with intervals if the name ends in "
        ".csv; LETOR text with --data."
    )],
    data: Annotated[list[Path] | None, typer.Option(
        "--data", help="Features of the documents (LETOR, CSV or parquet), for LETOR text; repeat "
        "for several files."
    )] = None,
    model: Annotated[Fitted | None, typer.Option(
        "--model", "-m", help="Click model.", show_default="position-based; of smoothed labels the "
        "one that predicts held-out sessions best",
    )] = None,
    labels: Annotated[Labels, typer.Option(
        help="Grades; soft: the attractiveness itself; smoothed: the same, from clicks and, where "
        "documents have few impressions, from features (--data); for training."
    )] = Labels.grades,
    grades: Annotated[int | None, typer.Option(
        min=2, max=32, help="Number of grades.", show_default="5"
    )] = None,
    thresholds: Annotated[str | None, typer.Option(
        help="Lowest attractiveness of the grades 1, 2, ..., as in 0.1,0.3,0.6.",
        show_default="grades of equal size",
    )] = None,
    few: Annotated[Few, typer.Option(help="Documents of few impressions: left out, or pooled.")] = (
        Few.drop
    ),
    min_impressions: Annotated[int | None, typer.Option(
        min=1, help="What is not few.", show_default="10; of smoothed labels 1"
    )] = None,
    samples: Annotated[int | None, typer.Option(
        min=0, help="Number of bootstrap samples for intervals; 0: none.",
        show_default="100; smoothed labels have none",
    )] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the samples.")] = 0,
    *,
    impressions: LogReading,
    threads: Threads = None,
) -> None:  # fmt: skip
    """Make judgements from clicks: qrels, a table, or LETOR text with features.

    Examples:

    rankgrove clicks judge clicks.csv --out qrels.txt

    rankgrove clicks judge clicks.csv --data features.txt --few pool --out train.txt

    rankgrove clicks judge clicks.csv --data features.txt --labels smoothed --out train.txt
    """
    import rankgrove as rg
    from rankgrove.cli.outputs import say_written

    _check_out("judge", out, log, impressions.ubi, *(data or []))
    _check_labels(labels, out, bool(data), samples)
    if labels is not Labels.grades and (grades is not None or thresholds is not None):
        option = "--thresholds" if grades is None else "--grades"
        raise ParameterError(f"{option} is for --labels grades. Got --labels {labels.value}.")
    _refuse_context(impressions.context, model or Fitted.position_based)
    settings: dict[str, Any] = {
        "n_grades": grades or 5,
        "thresholds": None if thresholds is None else _numbers(thresholds),
        "few": few.value,
    }
    features = Reading().load(data) if data else None
    read = impressions.load(log)
    chosen = model or Fitted.position_based
    if labels is Labels.smoothed:
        assert features is not None
        own = None if model is None and not read.contexts else _click_model(chosen, read, threads)
        settings |= {"min_impressions": min_impressions or 1}
        judged = rg.smoothed_judgements(read, features, own, seed=seed, **settings)
    else:
        judged = rg.judgements(
            read,
            _click_model(chosen, read, threads),
            labels=labels.value,
            min_impressions=min_impressions or 10,
            samples=100 if samples is None else samples,
            seed=seed,
            **settings,
        )
    with notes():
        judged.write(out, features)
    typer.echo(str(judged))
    say_written(out)


def _check_labels(labels: Labels, out: Path, has_data: bool, samples: int | None) -> None:
    """Refuse labels that cannot be made or written."""
    if labels is Labels.smoothed and not has_data:
        raise ParameterError(
            "Smoothed labels come from clicks and features: give --data FILE, or --labels soft."
        )
    if labels is Labels.smoothed and samples:
        raise ParameterError("Smoothed labels have no intervals: leave --samples out.")
    is_table = out.name.lower().endswith((".csv", ".csv.gz"))
    if labels is not Labels.grades and not has_data and not is_table:
        raise ParameterError(
            f"Soft labels are no grades, and {out} would be qrels: name a .csv file, or give "
            "--data."
        )


def _numbers(text: str) -> Sequence[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ParameterError(
            f"Write --thresholds as rising numbers, as in 0.1,0.3,0.6. Got {text!r}."
        ) from None


@clicks.command(cls=Command)
@reads_log("rankers learn what positions do for each of their values")
@reads_data(has_model=False)
def data(
    log: LogFile,
    documents: Annotated[list[Path], typer.Argument(
        metavar="DATA...", help="Features of the documents: LETOR files, or one CSV/parquet file."
    )],
    out: Out,
    missing: Annotated[Missing, typer.Option(
        help="Impressions without features: an error, or left out with a note."
    )] = Missing.error,
    *,
    impressions: LogReading,
    reading: Reading,
) -> None:  # fmt: skip
    """Write one row per impression: query id = session, label = click, and features.

    Positions go to a file of the same name plus .positions, which `rankgrove train` takes: one line
    per row, with the position, the number of the pair of query and document, and the context.

    Examples:

    rankgrove clicks data clicks.csv features.txt --out rows.txt

    rankgrove train rows.txt --position rows.txt.positions --set position_bias=ips --out web.rg
    """
    import rankgrove as rg
    from rankgrove.cli.outputs import check_writable, say_written
    from rankgrove.data.position_files import write_positions

    places = out.with_name(out.name + ".positions")
    check_writable(
        "clicks data",
        {"--out": out, "--out (positions)": places},
        [log, impressions.ubi, *documents],
    )
    judged = reading.load(documents)
    read = impressions.load(log)
    with notes():
        rows = rg.click_data(read, judged, context=list(read.contexts), missing=missing.value)
    rg.write_letor(rows, out)
    assert rows.positions is not None
    write_positions(places, rows.positions)
    typer.echo(str(rows))
    say_written(out, places)


@clicks.command(cls=Command)
@reads_data("base_score", has_model=False)
def simulate(
    judged: Annotated[list[Path], typer.Argument(
        metavar="DATA...", help="Judged data: LETOR files (plain or gzip), or one CSV/parquet file."
    )],
    out: LogOut,
    system: Annotated[list[str], typer.Option(
        "--system", "-s", help="What ranked the documents: a model file, a file with one score per "
        "line, or feature:N. Repeat for several: every session takes one of them."
    )],
    model: Annotated[UserModel, typer.Option("--model", "-m", help="How users click.")] = (
        UserModel.position_based
    ),
    sessions: Annotated[int, typer.Option(min=1, help="Number of sessions.")] = 100_000,
    shown: Annotated[int, typer.Option(min=1, help="Number of documents that are shown.")] = 10,
    noise: Annotated[float, typer.Option(
        min=0, help="Noise on the scores in every session, in standard deviations of a query."
    )] = 0.0,
    eta: Annotated[float, typer.Option(min=0, help="How fast users look away.")] = 1.0,
    epsilon: Annotated[float, typer.Option(
        min=0, max=1, help="Probability that an irrelevant document attracts."
    )] = 0.1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all draws.")] = 0,
    *,
    reading: Reading,
    threads: Threads = None,
) -> None:  # fmt: skip
    """Write the log of simulated users, who look at ranked results and click.

    Examples:

    rankgrove clicks simulate train.txt --system feature:1 --noise 1 --out clicks.parquet
    """
    import rankgrove as rg
    from rankgrove.cli.inputs import load_systems, parse_sources
    from rankgrove.cli.outputs import check_writable, say_written

    _check_log_out(out)
    sources = parse_sources(system)
    check_writable("clicks simulate", {"--out": out},
                   [*judged, *(source.file for source in sources.values())])  # fmt: skip
    systems, known = load_systems(sources, judged, None, reading)
    log = rg.simulate_clicks(
        known,
        list(systems.values()),
        model=model.value,
        sessions=sessions,
        seed=seed,
        n_shown=shown,
        noise=noise,
        eta=eta,
        epsilon=epsilon,
        n_threads=threads,
    )
    log.write(out)
    typer.echo(str(log))
    say_written(out)
