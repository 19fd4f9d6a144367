"""The command line: each command calls a `Service` or reads a project, and prints the result."""
