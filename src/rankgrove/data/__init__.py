"""Judged data: reading, writing, folding and generating it."""
