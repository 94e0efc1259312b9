"""Scores in a search engine compared with the model's: what engines compute, why scores differ."""
