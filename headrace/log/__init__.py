"""The hot log: topics of partitions of segments with offsets. Imports no pyspark."""
