"""Bags of rankers: samples of queries, and scores of many models made one."""
