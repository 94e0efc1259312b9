"""Experiments: studies of many fits, their results kept as they come, and the papers' tables."""
