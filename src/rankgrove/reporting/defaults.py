"""Defaults of the report; this module imports nothing, which keeps ``rankgrove --help`` fast."""

from __future__ import annotations

MEASURES = ("ndcg@10", "ndcg@1", "map", "mrr", "err")
DOCUMENTS = 5000
