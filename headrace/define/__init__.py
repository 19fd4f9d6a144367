"""Reads a project's settings, SQL and Python into definitions with their origin. It has no side
effects.
"""
