"""The world -> the log: the intake of each stream, and one connector a file."""
