"""Sigma rules, as other tools share them, become Headrace SQL. `script.translated` does it."""
