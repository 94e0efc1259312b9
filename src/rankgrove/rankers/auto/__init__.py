"""AutoRanker: many rankers cross-fitted, and the best combination of them."""
