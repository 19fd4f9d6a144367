"""What an observer sees of a project, read from where it is kept when it is asked for."""
