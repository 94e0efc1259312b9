"""The version, in the one place that everything else reads."""

__version__ = "1.0.0"
