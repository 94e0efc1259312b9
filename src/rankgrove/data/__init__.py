"""Judged data: reading, writing, splitting and generating it."""
