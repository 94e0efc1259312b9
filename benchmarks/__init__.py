"""Benchmarks: one script a claim, each prints a ratio measured in one run."""
