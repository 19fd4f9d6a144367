"""What an observer sees of a project: the shapes that a console is built on, one noun a file.

A field is never taken away and never means another thing; what is not known is null.
tests/api/test_observing.py sends each there and back.
"""
