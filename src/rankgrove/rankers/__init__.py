"""Estimators with scikit-learn's manners; the only place that imports it."""
