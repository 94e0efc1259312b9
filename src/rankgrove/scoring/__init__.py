"""Scoring documents with a trained model."""
