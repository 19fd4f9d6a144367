"""The cold log: every event for ever, in one Delta table a stream."""
