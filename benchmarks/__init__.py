"""One script a claim; each prints ratios measured in one run."""
