"""The measure of two rankers' combination as an exact function of its weight."""
