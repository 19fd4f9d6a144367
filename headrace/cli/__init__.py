"""The command line: each command asks a `Service` or reads a project, and shows the answer."""
