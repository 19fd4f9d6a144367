"""`python -m headrace` is the `headrace` command."""

from headrace.cli.main import app

app()
