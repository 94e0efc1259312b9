"""Weights of rankers and of trees, found on judged data."""
