"""A project from Python: `headrace.connect` gives a client that asks, sends and listens."""
