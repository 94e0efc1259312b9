"""Explaining: what every feature adds to a score, and how scores follow one feature."""
