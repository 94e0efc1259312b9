"""Data made to order: of any size, from a seed, the same wherever and however it is made.

``task`` fixes what is to be learned, ``seed`` the queries that are drawn: a training and a test
set share the task and differ in the seed. Queries are made in blocks, each from a generator of
its own, so memory stays bounded, and the first queries of a larger set are the smaller set.
"""

from __future__ import annotations

from rankgrove.data.synthetic.artificial import make_artificial
from rankgrove.data.synthetic.domains import make_domains
from rankgrove.data.synthetic.web import make_web

__all__ = ["make_artificial", "make_domains", "make_web"]
