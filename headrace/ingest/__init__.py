"""Appends events to the log: the intake of each stream, and one connector per module."""
