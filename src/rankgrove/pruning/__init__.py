"""Pruning: fewer trees at the same quality."""
