"""``rankgrove generate``: synthetic data of any size."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rankgrove.errors import ParameterError
from rankgrove.files import real_path


class Kind(StrEnum):
    """Kinds of data."""

    artificial = "artificial"
    web = "web"
    domains = "domains"


def generate(
    kind: Annotated[
        Kind,
        typer.Argument(
            help="artificial: the papers' random polynomials. web: like web search logs (counts, "
            "heavy tails, zeros, noise). domains: a source and a related target market."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="LETOR file to write (.gz compresses).")],
    queries: Annotated[int, typer.Option(min=1, help="Number of queries.")] = 1000,
    docs: Annotated[
        int | None,
        typer.Option(min=1, help="Documents per query.", show_default="50; web 120; domains 40"),
    ] = None,
    features: Annotated[
        int | None, typer.Option(min=1, help="Number of features.", show_default="50; web 136")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the queries.")] = 0,
    task: Annotated[
        int,
        typer.Option(min=0, help="Seed of the function to learn; use the same one for all parts."),
    ] = 0,
    labels: Annotated[
        str, typer.Option(help="artificial: label distribution: skewed, equal or fitted.")
    ] = "skewed",
    target_out: Annotated[
        Path | None, typer.Option(help="domains: LETOR file to write the target market to.")
    ] = None,
    target_queries: Annotated[
        int | None,
        typer.Option(
            min=1, help="domains: number of queries of the target market.", show_default="--queries"
        ),
    ] = None,
    feature_shift: Annotated[
        float, typer.Option(min=0, help="domains: how much the distribution of features differs.")
    ] = 0.3,
    relevance_shift: Annotated[
        float, typer.Option(min=0, max=1, help="domains: how much the notion of relevance differs.")
    ] = 0.3,
) -> None:
    """Generate synthetic data from a seed: the same options give the same file on any machine.

    Parts of one task (training, validation, test) share --task and differ in --seed:

    rankgrove generate artificial --queries 1000 --seed 1 --out train.txt

    rankgrove generate artificial --queries 500 --seed 2 --out test.txt

    rankgrove generate domains --queries 6000 --out big.txt --target-queries 300
    --target-out small.txt
    """
    import rankgrove as rg

    sizes = {}
    if docs is not None:
        sizes["n_docs"] = docs
    if features is not None:
        sizes["n_features"] = features
    if kind is Kind.domains:
        if target_out is None:
            raise ParameterError("domains writes two files: give --target-out too.")
        if real_path(target_out) == real_path(out):
            raise ParameterError(
                f"domains writes two files, and both --out and --target-out are {out}: "
                "give each its own name."
            )
        source, target = rg.make_domains(
            queries,
            target_queries or queries,
            feature_shift=feature_shift,
            relevance_shift=relevance_shift,
            seed=seed,
            task=task,
            **sizes,
        )
        _write(target, target_out)
    elif kind is Kind.web:
        source = rg.make_web(queries, seed=seed, task=task, **sizes)
    else:
        source = rg.make_artificial(queries, labels=labels, seed=seed, task=task, **sizes)
    _write(source, out)


def _write(dataset: object, path: Path) -> None:
    import rankgrove as rg

    assert isinstance(dataset, rg.QueryDataset)
    rg.write_letor(dataset, path)
    typer.echo(f"{path}: {dataset!r}")
