"""What a search engine computes from a model file: one :class:`Engine` per set of rules.

An engine is emulated from its sources: how it compares, how wide its numbers are, what it does with
missing values, and in which order it adds. An emulator reads the file that is uploaded, and shares
no code with the writers in :mod:`rankgrove.formats`, so that each is a test of the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np


class EngineModel(Protocol):
    """A model as an engine holds it after parsing."""

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features that the model reads."""
        ...

    def scores(self, values: np.ndarray) -> np.ndarray:
        """Return the engine's scores.

        values : (documents, features) float64, columns as in `features`; NaN where the document
            lacks the feature
        """
        ...


@dataclass(frozen=True)
class Engine:
    """An engine, or those of its versions that follow the same rules.

    Attributes
    ----------
    name : as for ``--engine``, such as ``"opensearch-3.1"``
    title : engine and versions in words
    format : the format of ``rg.convert`` that it reads
    sources : files and versions that the emulator was written from
    read : parses the file that is uploaded; raises :class:`~rankgrove.errors.ModelFileError` where
        the engine would refuse it
    """

    name: str
    title: str
    format: str
    sources: tuple[str, ...]
    read: Callable[[bytes], EngineModel]
