"""Common parts of all training by rounds: validation, the progress bar, checkpoints."""
