"""Objectives: functions from scores to the gradients that boosting and nets follow."""
