"""Fewer trees at the same quality."""
