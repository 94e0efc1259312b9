"""What is done with trained rankers: combining, pruning, converting, adapting, checking."""
