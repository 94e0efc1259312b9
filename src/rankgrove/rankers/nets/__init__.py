"""Rankers whose models are nets."""
