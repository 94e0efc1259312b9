"""Bags of rankers: samples of queries, and combined scores of many models."""
