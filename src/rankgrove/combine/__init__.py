"""Weights of rankers and of trees, optimised on judged data."""
