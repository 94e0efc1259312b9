"""Measures of a ranking, with the swap deltas that lambda gradients need."""
