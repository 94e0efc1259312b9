"""Boosting: the loop and its parts."""
