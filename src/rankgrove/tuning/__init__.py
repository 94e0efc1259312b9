"""Tuning: parameter search, cross-validation, surveys of all rankers, variance over samples."""
