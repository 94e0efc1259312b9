"""``rankgrove combine``: trained models or score files, combined with the best weights."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankgrove.cli.options import Convention, Reading, Threads, reads_data
from rankgrove.errors import ParameterError

if TYPE_CHECKING:
    from rankgrove.data.queries import QueryDataset


class CombinedForm(StrEnum):
    """How two systems are combined."""

    convex = "convex"
    additive = "additive"


class Points(StrEnum):
    """Whether a single weight may be the best."""

    include = "include"
    exclude = "exclude"


class Method(StrEnum):
    """How the weights of several systems are found."""

    exact = "exact"
    cyclic = "cyclic"
    powell = "powell"


Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="DATA... [MODEL]...",
        help="The judged data, LETOR files (plain or gzip) or one CSV/parquet file; and model "
        "files.",
    ),
]
ScoreFiles = Annotated[
    list[Path] | None,
    typer.Option(
        help="A system given as a file with one score per line, in the row order of the data; "
        "repeat for several."
    ),
]
MeasureName = Annotated[str, typer.Option("--measure", "-m", help="Measure to maximise.")]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        help="File to write the combined model to. With --scores (there is no model then), or if "
        "the file ends in .txt or .scores, the combined scores are written instead.",
    ),
]
ScoresOut = Annotated[Path | None, typer.Option(help="File to write the combined scores to.")]
MethodUsed = Annotated[
    Method | None,
    typer.Option(
        help="exact: two systems, the best of all weights; cyclic: several systems, one weight "
        "after the other, each exactly; powell: Powell's search.",
        show_default="exact for two, cyclic for more",
    ),
]
FormUsed = Annotated[
    CombinedForm,
    typer.Option(
        help="exact: (1-alpha) a + alpha b (convex) or a + alpha b (additive), for the systems a "
        "and b in the given order."
    ),
]
Bounds = Annotated[
    str | None,
    typer.Option(
        help="exact: lowest and highest alpha; required for the additive form.", metavar="LO,HI"
    ),
]
PointsUsed = Annotated[
    Points,
    typer.Option(
        help="exact: whether isolated values of alpha, where documents tie, may be chosen "
        "(include), or only intervals of alpha and the ends (exclude)."
    ),
]
Plot = Annotated[
    Path | None,
    typer.Option(help="exact: picture to write, with the measure over alpha (needs matplotlib)."),
]
Curve = Annotated[
    Path | None, typer.Option(help="exact: CSV file to write, with the measure over alpha.")
]


# Endings of files that hold scores, not a model.
SCORE_ENDINGS = (".txt", ".scores")


@reads_data("base_score")
def combine(
    files: Files,
    scores: ScoreFiles = None,
    measure: MeasureName = "ndcg@10",
    out: Out = None,
    scores_out: ScoresOut = None,
    method: MethodUsed = None,
    form: FormUsed = CombinedForm.convex,
    bounds: Bounds = None,
    points: PointsUsed = Points.include,
    plot: Plot = None,
    curve: Curve = None,
    convention: Convention = "papers",
    *,
    reading: Reading,
    threads: Threads = None,
) -> None:
    """Combine trained models (or score files) with the weights that are best on judged data.

    Examples:

    rankgrove combine vali.txt a.rg b.rg --measure ndcg@10 --out best.rg --plot curve.png

    rankgrove combine vali.txt a.rg b.rg c.rg --method powell --out best.rg

    rankgrove combine vali.txt --scores bm25.txt --scores new.txt --form additive --bounds 0.1,100
    --out combined.txt
    """
    import rankgrove as rg
    from rankgrove.cli.inputs import models_and_data, read_scores
    from rankgrove.cli.outputs import check_writable, say_written, score_lines
    from rankgrove.files import write_atomically
    from rankgrove.reporting.figure import save_figure

    rg.measure(measure, convention)
    models, data = models_and_data("combine", files)
    scores = scores or []
    chosen = method or (Method.exact if len(models) + len(scores) == 2 else Method.cyclic)
    _check(chosen, len(models) + len(scores), form, bounds, points, plot, curve)
    model, scored = _outputs(out, scores_out, bool(scores))
    written = {"--out": model, "--scores-out": scored, "--curve": curve, "--plot": plot}
    check_writable("combine", written, [*files, *scores])
    trained = [rg.load(path) for path in models]
    named = dict(zip(map(str, models), trained, strict=True))
    judged = reading.load(data, models=named)
    systems: list[Any] = [*trained, *(read_scores(path, judged.n_rows) for path in scores)]
    extra: dict[str, Any] = {
        "convention": convention,
        "names": [path.name for path in [*models, *scores]],
        "n_threads": threads,
    }
    combination: Any
    if chosen is Method.exact:
        first, second = systems
        combination = rg.optimal_combination(
            first, second, judged, measure, form.value, _pair(bounds), points=points.value, **extra
        )
    else:
        combination = rg.interpolate(systems, judged, measure, chosen.value, **extra)
    if curve is not None:
        combination.to_csv(curve)
    if plot is not None:
        save_figure(rg.plot.combination_curve(combination), plot)
    if model is not None:
        combination.save(model)
    if scored is not None:
        combined = combination.predict(_to_score(combination, systems, judged), n_threads=threads)
        write_atomically(scored, score_lines(combined))
    typer.echo(str(combination))
    say_written(*written.values())


def _outputs(
    out: Path | None, scores_out: Path | None, from_scores: bool
) -> tuple[Path | None, Path | None]:
    """Return the files for the model and for the scores."""
    if out is None or (scores_out is not None and not from_scores):
        return out, scores_out
    if from_scores and (scores_out is not None or out.suffix == ".rg"):
        raise ParameterError(
            "Scores from a file have no model: give one of --out and --scores-out, a text file for "
            f"the combined scores. Got --out {out}."
        )
    if from_scores:
        return None, out
    if out.suffix in SCORE_ENDINGS:
        typer.echo(
            f"hint: combine: --out {out} is a score file, by its ending. Write scores with "
            "--scores-out, the model with --out best.rg.",
            err=True,
        )
        return None, out
    return out, None


def _to_score(combination: Any, systems: list[Any], judged: QueryDataset) -> Any:
    """Return the input of `combination.predict`: the data, or without a ranker all scores."""
    if combination.ranker is not None:
        return judged
    return [system.predict(judged) if hasattr(system, "predict") else system for system in systems]


def _check(
    method: Method,
    n_systems: int,
    form: CombinedForm,
    bounds: str | None,
    points: Points,
    plot: Path | None,
    curve: Path | None,
) -> None:
    """Refuse options that exclude each other."""
    if n_systems < 2:
        raise ParameterError(
            f"Give at least two systems, model files or --scores FILE. Got {n_systems}."
        )
    if method is Method.exact:
        if n_systems != 2:
            raise ParameterError(
                f"--method exact combines two systems. Got {n_systems}: take cyclic or powell."
            )
        return
    if form is not CombinedForm.convex or bounds or points is not Points.include or plot or curve:
        raise ParameterError(
            "--form, --bounds, --points, --plot and --curve are for two systems and --method exact."
        )


def _pair(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise ParameterError(
            f"Write --bounds as two numbers separated by a comma, as in 0.1,100. Got {text!r}."
        ) from None
    return low, high
