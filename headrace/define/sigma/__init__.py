"""Translates Sigma rules, which many tools share, to Headrace SQL: `script.translate`."""
