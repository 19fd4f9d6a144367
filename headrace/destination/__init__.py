"""Where panes of sinks and notifications of alerts go: one kind of destination a file, from its
SQL to its delivery. Nothing here decides what is sent, or when.
"""
