"""Monitoring of a project: read from store, log and master on each request."""
