"""Benchmarks: one script per claim; each prints ratios against peers measured in the same run."""
