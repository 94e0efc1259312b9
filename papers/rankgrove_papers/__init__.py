"""The experiments of five papers, and of all rankers together, behind ``rankgrove reproduce``."""
