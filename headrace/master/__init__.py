"""The master dataset: every event, kept permanently, in one Delta table per stream."""
