"""The Python client: `headrace.connect` gives a client that queries, sends and subscribes."""
