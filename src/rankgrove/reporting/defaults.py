"""What a report shows where nothing else is said; light enough for ``rankgrove --help``."""

from __future__ import annotations

MEASURES = ("ndcg@10", "ndcg@1", "map", "mrr", "err")
DOCUMENTS = 5000
