"""Explaining scores: feature contributions (SHAP values) and partial dependence."""
