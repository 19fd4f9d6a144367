"""Spark's SQL in DuckDB, certified to mean the same.

A query over served rows is read as Spark reads it, with Spark's types and implicit casts, and
written as DuckDB SQL that gives the same values. Every operator, cast and function is a row of a
table; what has no row is refused with a sentence. tests/certified compares each row with Spark over
typed values and their edges (NULL, NaN, -0.0, empty text, the first and last dates, the limits of
BIGINT and DECIMAL).
"""
