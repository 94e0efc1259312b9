"""``rg.mlflow``: rankers as MLflow models, and their parameters, curves and measures in its runs.

A logged model holds rankgrove's own model file and no pickle. MLflow is not a dependency: it is
imported when a function here is called. MLmodel files name this module: it keeps its name.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove._version import __version__
from rankgrove.data.dataset_checks import is_frame
from rankgrove.errors import DataError, MissingExtraError, ModelFileError, ParameterError
from rankgrove.operations.named_features import dataset_of_frame, feature_columns
from rankgrove.rankers.base import Ranker, plain_parameters
from rankgrove.validation import check_flag, check_integer

if TYPE_CHECKING:
    from collections.abc import Callable

    from rankgrove.evaluation.evaluate import Evaluation
    from rankgrove.training.progress import Progress

__all__ = [
    "load_model",
    "log_evaluation",
    "log_model",
    "log_training",
    "metric_name",
    "pip_requirements",
    "save_model",
    "signature",
    "training_callback",
]

FLAVOR = "rankgrove"
MODEL_FILE = "model.rg"
QUERY = "qid"
MOST_METRICS = 1000  # of one request to the tracking server
# What MLflow allows in names of metrics and parameters.
_ILLEGAL = re.compile(r"[^\w\-. /]", re.ASCII)


def log_model(
    model: Ranker,
    name: str = "model",
    *,
    registered_model_name: str | None = None,
    **kwargs: Any,
) -> Any:
    """Log a trained ranker as a model of the active run; a new run, if there is none.

    Parameters
    ----------
    model : a trained ranker
    name : the model's name in the run
    registered_model_name : also register the model under this name
    kwargs : as in :func:`save_model`, except its `path`

    Returns
    -------
    MLflow's ModelInfo: ``model_uri`` is what :func:`load_model` and ``mlflow.pyfunc.load_model``
    take
    """
    log = _mlflow("log_model").models.Model.log
    _check_model(model, "log_model")
    return log(
        artifact_path=None,
        name=name,
        flavor=sys.modules[__name__],
        registered_model_name=registered_model_name,
        model=model,
        **kwargs,
    )


def save_model(
    model: Ranker,
    path: str | Path,
    *,
    query_column: str = QUERY,
    input_example: Any = None,
    signature: Any = None,
    pip_requirements: Sequence[str] | str | None = None,
    extra_pip_requirements: Sequence[str] | None = None,
    conda_env: Any = None,
    code_paths: list[str] | None = None,
    metadata: dict[str, Any] | None = None,
    mlflow_model: Any = None,
) -> None:
    """Write a trained ranker as an MLflow model into a new folder.

    Parameters
    ----------
    model : a trained ranker
    path : the folder, which must not exist or be empty
    query_column : the column of query ids in frames to be scored; only rankers that scale something
        within a query need it
    input_example : a frame with a few rows of the features, that MLflow keeps with the model
    signature : the columns of frames to be scored. None: :func:`signature`; False: none
    pip_requirements : the packages to score with; None: :func:`pip_requirements`
    extra_pip_requirements : packages in addition
    conda_env, code_paths, metadata, mlflow_model : as in ``mlflow.pyfunc.save_model``
    """
    mlflow = _mlflow("save_model")
    _check_model(model, "save_model")
    if signature is None:
        signature = _signature(model, query_column)
    if input_example is not None and is_frame(input_example):
        _check_columns(model, input_example, query_column, "save_model, input_example")
    if pip_requirements is None and conda_env is None:
        pip_requirements = [*_requirements(), *(extra_pip_requirements or ())]
        extra_pip_requirements = None
    mlflow_model = mlflow.models.Model() if mlflow_model is None else mlflow_model
    mlflow_model.add_flavor(
        FLAVOR,
        data=f"data/{MODEL_FILE}",
        kind=model.kind,
        query_column=query_column,
        rankgrove_version=__version__,
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / MODEL_FILE
        model.save(file)
        mlflow.pyfunc.save_model(
            path=str(path),
            loader_module=__name__,
            data_path=str(file),
            mlflow_model=mlflow_model,
            model_config={"query_column": query_column},
            signature=signature,
            input_example=input_example,
            pip_requirements=pip_requirements,
            extra_pip_requirements=extra_pip_requirements,
            conda_env=conda_env,
            code_paths=code_paths,
            metadata=metadata,
        )


def load_model(model_uri: str, dst_path: str | None = None) -> Ranker:
    """Return the ranker of an MLflow model.

    Parameters
    ----------
    model_uri : such as ``models:/web/3``, ``runs:/<run id>/model``, or a folder
    dst_path : the folder to download to; None: a temporary one
    """
    from rankgrove.rankers.load import load

    mlflow = _mlflow("load_model")
    folder = mlflow.artifacts.download_artifacts(artifact_uri=str(model_uri), dst_path=dst_path)
    flavors = mlflow.models.Model.load(folder).flavors
    if FLAVOR not in flavors:
        raise ModelFileError(
            f"{model_uri} is no model of rankgrove: its flavors are {', '.join(flavors)}. "
            "Log it with rg.mlflow.log_model, or load it with mlflow.pyfunc.load_model."
        )
    return load(Path(folder) / flavors[FLAVOR]["data"])


def signature(model: Ranker, query_column: str = QUERY) -> Any:
    """Return the MLflow signature of a ranker: its features by name in, one score per row out.

    Features are doubles, categorical ones that have names are strings. The query column is in it
    where the ranker scales something within a query. Features without names are called f1, f2, ...

    Parameters
    ----------
    model : a trained ranker
    query_column : as in :func:`save_model`
    """
    _mlflow("signature")
    _check_model(model, "signature")
    return _signature(model, query_column)


def _signature(model: Ranker, query_column: str) -> Any:
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, Schema
    from mlflow.types.schema import AnyType

    names = model._names()
    named = {names[j] for j, texts in model.categories_.items() if texts is not None}
    columns = [ColSpec("string" if name in named else "double", name) for name in names]
    if model.scaled_by_query() is not None:
        if query_column in names:
            raise ParameterError(
                f"The query column {query_column!r} has the name of a feature: choose another one "
                "by 'query_column'."
            )
        columns.append(ColSpec(AnyType(), query_column))
    return ModelSignature(inputs=Schema(columns), outputs=Schema([ColSpec("double")]))


def pip_requirements() -> list[str]:
    """Return what a logged model needs to be scored: rankgrove, NumPy and Numba, these versions."""
    return _requirements()


def _requirements() -> list[str]:
    from importlib.metadata import version

    return [f"rankgrove=={__version__}", *(f"{one}=={version(one)}" for one in ("numpy", "numba"))]


# -- scoring --------------------------------------------------------------------------------------


class _Scoring:
    """What ``mlflow.pyfunc.load_model`` returns inside its own wrapper."""

    def __init__(self, model: Ranker, query_column: str) -> None:
        self.model = model
        self.query_column = query_column

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> np.ndarray:
        """Return one score per row, in the order of the rows."""
        del params
        if not is_frame(model_input):
            return self.model.predict(model_input)
        owner = "predict"
        columns = _check_columns(self.model, model_input, self.query_column, owner)
        if self.model.scaled_by_query() is not None:
            data = dataset_of_frame(self.model, model_input, owner, qid=self.query_column)
            return self.model.predict(data)
        features = model_input[columns]
        has_names = getattr(self.model, "feature_names_", None) is not None
        return self.model.predict(features if has_names else features.to_numpy())


def _load_pyfunc(path: str, model_config: Mapping[str, Any] | None = None) -> _Scoring:
    """Return the model of a file; MLflow calls it."""
    from rankgrove.rankers.load import load

    return _Scoring(load(path), str((model_config or {}).get("query_column", QUERY)))


def _check_columns(model: Ranker, frame: Any, query_column: str, owner: str) -> list[Any]:
    """Return the columns of a frame that are the model's features, in its order."""
    names = list(frame.columns)
    scaled = model.scaled_by_query()
    if scaled is not None and query_column not in names:
        raise DataError(
            f"{owner}: the model scales {scaled} within every query, so it needs the column "
            f"{query_column!r} of query ids, which the table lacks."
        )
    return feature_columns(model, names, {query_column}, owner)


# -- runs -----------------------------------------------------------------------------------------


def metric_name(name: str) -> str:
    """Return the name of a measure in MLflow, which does not allow all characters.

    Examples
    --------
    >>> metric_name("ndcg@10"), metric_name("p(rel=2)@5")
    ('ndcg_at_10', 'p_rel_2_at_5')
    """
    words = _ILLEGAL.sub("_", name.replace("@", "_at_"))
    return re.sub(r"__+", "_", words).strip("_")


def _metric_names(names: Sequence[str]) -> dict[str, str]:
    """Return the names of metrics by measure; refuse two measures of one name."""
    by_measure = {name: metric_name(name) for name in names}
    for name, metric in by_measure.items():
        twin = next(other for other, theirs in by_measure.items() if theirs == metric)
        if twin != name:
            raise DataError(
                f"{twin!r} and {name!r} would both be the metric {metric!r} in MLflow: log them "
                "under two prefixes."
            )
    return by_measure


def log_evaluation(
    evaluation: Evaluation,
    *,
    prefix: str = "",
    step: int | None = None,
    artifact: str | None = None,
) -> dict[str, float]:
    """Log the means of an evaluation, their 95 % intervals and the numbers of queries as metrics.

    A measure that leaves out every query is not logged.

    Parameters
    ----------
    evaluation : the result of :func:`rankgrove.evaluate`
    prefix : put before the metrics' names, such as ``"test/"``
    step : the step of the metrics
    artifact : also log everything, per-query values included, as a JSON file of this name

    Returns
    -------
    the metrics that were logged, by name: ``ndcg_at_10``, ``ndcg_at_10/low``,
    ``ndcg_at_10/high`` and ``ndcg_at_10/queries`` for ndcg@10
    """
    mlflow = _mlflow("log_evaluation")
    names = _metric_names(list(getattr(evaluation, "mean", {})))
    if not names:
        raise DataError(
            f"log_evaluation takes the result of rg.evaluate. Got {type(evaluation).__name__}."
        )
    metrics: dict[str, float] = {}
    for row in evaluation.rows():
        metric = prefix + names[row["measure"]]
        values = {metric: row["mean"], f"{metric}/low": row["low"], f"{metric}/high": row["high"]}
        values[f"{metric}/queries"] = row["queries"]
        if row["mean"] is not None:
            metrics |= {name: float(v) for name, v in values.items() if v is not None}
    mlflow.log_metrics(metrics, step=step)
    if artifact is not None:
        mlflow.log_dict(evaluation.to_dict(), artifact)
    return metrics


def log_training(model: Ranker, *, prefix: str = "", curve: bool = True) -> None:
    """Log a trained ranker's parameters, and its learning curve on validation data.

    Parameters
    ----------
    model : a trained ranker
    prefix : put before the names of parameters and metrics
    curve : whether to log ``history_``, one step per round: the metric ``valid/ndcg_at_10``; False
        where :func:`training_callback` has logged it
    """
    mlflow = _mlflow("log_training")
    _check_model(model, "log_training")
    check_flag("curve", "log_training", curve)
    parameters = {"ranker": type(model).__name__, **plain_parameters(model)}
    mlflow.log_params({prefix + name: value for name, value in parameters.items()})
    history: Mapping[str, Mapping[str, Sequence[float]]] = getattr(model, "history_", None) or {}
    if not curve or not history:
        return
    now = int(1000 * time.time())
    metrics = [
        mlflow.entities.Metric(prefix + name, value, now, step)
        for name, values in _curves(history).items()
        for step, value in enumerate(values, start=1)
    ]
    run = mlflow.active_run() or mlflow.start_run()
    client = mlflow.MlflowClient()
    for start in range(0, len(metrics), MOST_METRICS):
        client.log_batch(run.info.run_id, metrics=metrics[start : start + MOST_METRICS])


def training_callback(*, prefix: str = "", every: int = 1) -> Callable[[Progress], None]:
    """Return a callback for ``fit`` that logs validation measures while training runs.

    Parameters
    ----------
    prefix : put before the metrics' names
    every : log only every so many rounds, and the last one
    """
    mlflow = _mlflow("training_callback")
    check_integer("every", "training_callback", every, low=1)

    def log_round(progress: Progress) -> None:
        if progress.round % every == 0 or progress.round == progress.rounds:
            curves = _curves(progress.watch.history)
            newest = {prefix + name: float(values[-1]) for name, values in curves.items()}
            if newest:
                mlflow.log_metrics(newest, step=progress.round)

    return log_round


def _curves(history: Mapping[str, Mapping[str, Sequence[float]]]) -> dict[str, Sequence[float]]:
    """Return the values of every validation data set and measure by the name of the metric."""
    by_name = {f"{d}/{m}": values for d, of in history.items() for m, values in of.items()}
    names = _metric_names(list(by_name))
    return {names[name]: values for name, values in by_name.items() if len(values)}


def _check_model(model: object, owner: str) -> None:
    """Refuse what is no trained ranker."""
    if not isinstance(model, Ranker):
        raise ParameterError(
            f"rg.mlflow.{owner} takes a trained ranker of rankgrove. Got {type(model).__name__}: "
            "give a path to rg.load first, and a model of another library to its own flavor."
        )
    model._check_is_fitted()


def _mlflow(owner: str) -> Any:
    """Return the package mlflow, with the parts that are used."""
    try:
        import mlflow
        import mlflow.artifacts
        import mlflow.models
        import mlflow.pyfunc
    except ImportError as error:
        # mlflow-skinny alone lacks pandas
        missing = (error.name or "mlflow").partition(".")[0]
        raise MissingExtraError(missing, "mlflow", f"rg.mlflow.{owner}") from None
    return mlflow
