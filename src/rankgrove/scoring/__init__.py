"""Scoring: what a trained model says of new documents."""
