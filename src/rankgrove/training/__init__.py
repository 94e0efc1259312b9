"""What every kind of training by rounds shares: validation, the progress bar, checkpoints."""
