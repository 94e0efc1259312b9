"""Evaluation of rankings, and significance tests of differences."""
