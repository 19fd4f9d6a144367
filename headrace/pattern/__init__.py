"""Row patterns: a pattern is compiled once, and then searched for in the rows of each key.

Plain Python over the types of headrace/core/pattern.py: no Spark, no Arrow. Read program.py first,
then selection.py, trail.py and matcher.py.
"""
