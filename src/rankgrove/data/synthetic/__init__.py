"""Synthetic data of any size, from a seed, the same on every machine.

``task`` fixes the function to be learned, ``seed`` the queries: a training set and a test set share
the task and differ in the seed. Queries are made in blocks, each with its own random generator, so
memory stays bounded, and a larger set begins with the queries of a smaller one.
"""

from __future__ import annotations

from rankgrove.data.synthetic.artificial import make_artificial
from rankgrove.data.synthetic.domains import make_domains
from rankgrove.data.synthetic.web import make_web

__all__ = ["make_artificial", "make_domains", "make_web"]
