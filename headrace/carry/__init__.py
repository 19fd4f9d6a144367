"""Carried steps: computations over the events of a key in order. Plain Python over Arrow, no Spark.

Batch and speed run the same fold over different events: batch over the master, speed over an epoch,
each beginning with the state that the events before have left.
"""
