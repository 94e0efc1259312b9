"""Figures for rankings, and what they prove."""
