"""Benchmarks: one script a claim, each prints ratios against peers measured in one run."""
