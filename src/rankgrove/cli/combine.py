"""``rankgrove combine``: the best weights of trained models, or of score files."""

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
        help="Model files, and the judged data: LETOR files (plain or gzip), or one "
        "CSV/parquet file."
    ),
]
ScoreFiles = Annotated[
    list[Path] | None,
    typer.Option(
        help="A file with one score a line, in the data's row order, as another system; "
        "repeat for several."
    ),
]
MeasureName = Annotated[str, typer.Option("--measure", "-m", help="What to maximise.")]
Model = Annotated[Path | None, typer.Option(help="File to write the combined model to.")]
Out = Annotated[
    Path | None, typer.Option("--out", "-o", help="File to write the combined scores to.")
]
MethodUsed = Annotated[
    Method | None,
    typer.Option(
        help="exact: two systems, the best of all weights; cyclic: several, one weight after "
        "the other exactly; powell: Powell's search.",
        show_default="exact for two, cyclic for more",
    ),
]
FormUsed = Annotated[
    CombinedForm,
    typer.Option(help="exact: (1-alpha) a + alpha b (convex), or a + alpha b (additive)."),
]
Bounds = Annotated[
    str | None,
    typer.Option(help="exact: LOW,HIGH of alpha; the additive form needs it.", metavar="LO,HI"),
]
PointsUsed = Annotated[
    Points,
    typer.Option(
        help="exact: whether a single alpha at which documents are tied may be the best (include), "
        "or only stretches of alphas and the ends (exclude)."
    ),
]
Plot = Annotated[
    Path | None,
    typer.Option(help="exact: picture of the measure over alpha (needs matplotlib)."),
]
Curve = Annotated[Path | None, typer.Option(help="exact: CSV file of the measure over alpha.")]


@reads_data("base_score")
def combine(
    files: Files,
    scores: ScoreFiles = None,
    measure: MeasureName = "ndcg@10",
    model: Model = None,
    out: Out = None,
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
    """Combine trained models (or score files) by the weights that are best on judged data.

    Examples:

    rankgrove combine a.rg b.rg vali.txt --measure ndcg@10 --model best.rg --plot curve.png

    rankgrove combine a.rg b.rg c.rg vali.txt --method powell --model best.rg

    rankgrove combine vali.txt --scores bm25.txt --scores new.txt --form additive --bounds 0.1,100
    """
    import rankgrove as rg
    from rankgrove.cli.inputs import read_scores
    from rankgrove.cli.outputs import score_lines
    from rankgrove.files import write_atomically
    from rankgrove.reporting.figure import check_plot, save_figure

    rg.measure(measure, convention)
    models, data = _sorted_out(files)
    scores = scores or []
    chosen = method or (Method.exact if len(models) + len(scores) == 2 else Method.cyclic)
    _check(chosen, len(models) + len(scores), form, bounds, points, plot, curve)
    if scores and model is not None:
        raise ParameterError(
            "Scores from a file have no model: leave --model out, and take --out for the combined "
            "scores."
        )
    if plot is not None:
        check_plot(plot)
    trained = [rg.load(path) for path in models]
    judged = reading.load(data, models=trained)
    systems: list[Any] = [*trained, *(read_scores(path, judged.n_rows) for path in scores)]
    known: dict[str, Any] = {
        "convention": convention,
        "names": [path.name for path in [*models, *scores]],
        "n_threads": threads,
    }
    found: Any
    if chosen is Method.exact:
        one, other = systems
        found = rg.optimal_combination(
            one, other, judged, measure, form.value, _pair(bounds), points=points.value, **known
        )
    else:
        found = rg.interpolate(systems, judged, measure, chosen.value, **known)
    if curve is not None:
        found.to_csv(curve)
    if plot is not None:
        save_figure(rg.plot.combination_curve(found), plot)
    if model is not None:
        found.save(model)
    if out is not None:
        combined = found.predict(_to_score(found, systems, judged), n_threads=threads)
        write_atomically(out, score_lines(combined))
    typer.echo(str(found))


def _to_score(found: Any, systems: list[Any], judged: QueryDataset) -> Any:
    """Return what a combination is to score: the data, or where it has no ranker all scores."""
    if found.ranker is not None:
        return judged
    return [one.predict(judged) if hasattr(one, "predict") else one for one in systems]


def _sorted_out(files: list[Path]) -> tuple[list[Path], list[Path]]:
    """Tell model files from data by their content."""
    from rankgrove.cli.inputs import check_exists
    from rankgrove.formats.read import kind_of

    models: list[Path] = []
    data: list[Path] = []
    for path in files:
        check_exists(path)
        (data if kind_of(path) is None else models).append(path)
    if not data:
        raise ParameterError(
            "Give the judged data after the models, as in 'rankgrove combine a.rg b.rg vali.txt'."
        )
    return models, data


def _check(
    method: Method,
    n_systems: int,
    form: CombinedForm,
    bounds: str | None,
    points: Points,
    plot: Path | None,
    curve: Path | None,
) -> None:
    """Refuse what does not go together."""
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
            f"Write --bounds as two numbers with a comma between, as in 0.1,100. Got {text!r}."
        ) from None
    return low, high
