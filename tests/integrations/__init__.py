"""Other programs: tables, runs, MLflow, PyTerrier, pickles."""
