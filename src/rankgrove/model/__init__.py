"""Trained models as frozen arrays, and the model file."""
