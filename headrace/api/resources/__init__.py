"""Read-only resources of a project, each with its response types and GET request, one per file.

A field is never removed and never changes its meaning; an unknown value is null.
tests/api/test_resources.py requests each of them.
"""
