"""Measures of a ranking: values that own their swap deltas."""
