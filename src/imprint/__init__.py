"""Imprint publishes creative work on schedule, exactly once."""

__version__ = "0.1.0"
