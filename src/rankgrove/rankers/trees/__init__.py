"""Rankers whose models are trees."""
