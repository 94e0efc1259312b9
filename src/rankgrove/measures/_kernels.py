"""The compiled functions of the built-in rules, under the names that a user's own rule has too."""

from rankgrove.measures._swap_kernels import swap_matrix
from rankgrove.measures._value_kernels import evaluate_queries, ranked_value

__all__ = ["evaluate_queries", "ranked_value", "swap_matrix"]
