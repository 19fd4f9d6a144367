"""The HTTP API: one form of errors, one table of routes, and a client."""
