"""Structural SVMs: cutting planes, their small QP, and the oracles of ranking measures."""
