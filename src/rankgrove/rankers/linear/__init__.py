"""Rankers whose models are linear functions of features."""
