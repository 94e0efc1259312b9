"""Plots, and the report page that compares models."""
