"""Functions that choose among values."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.certified.casts import cast
from headrace.certified.function import Scalar, rows
from headrace.certified.operators import comparison, truth
from headrace.certified.typed import TypedSql, combine, not_available
from headrace.certified.types import widest


def chosen(condition: TypedSql, yes: TypedSql, no: TypedSql) -> TypedSql:
    """`if(condition, yes, no)`."""
    type = widest([yes.type, no.type])
    if type is None:
        raise not_available(f"a choice between values of type {yes.type} and {no.type}")
    condition, yes, no = truth(condition), cast(yes, type), cast(no, type)
    sql = f"CASE WHEN {condition.sql} THEN {yes.sql} ELSE {no.sql} END"
    return combine((condition, yes, no), sql, type)


def _nullif(arguments: Sequence[TypedSql]) -> TypedSql:
    a, b = arguments
    equal = comparison("=", a, b)
    return combine((equal, a), f"CASE WHEN {equal.sql} THEN NULL ELSE {a.sql} END", a.type)


def _nvl2(arguments: Sequence[TypedSql]) -> TypedSql:
    known = arguments[0].as_type(f"({arguments[0].sql} IS NOT NULL)", "BOOLEAN")
    return chosen(known, arguments[1], arguments[2])


ROWS = rows(
    Scalar("coalesce", ("SAME*",), "coalesce({all})", "="),
    Scalar("ifnull", ("SAME", "SAME"), "coalesce({0}, {1})", "="),
    Scalar("nvl", ("SAME", "SAME"), "coalesce({0}, {1})", "="),
    Scalar("nullif", ("ANY", "ANY"), _nullif),
    Scalar("nvl2", ("ANY", "ANY", "ANY"), _nvl2),
    Scalar("if", ("ANY", "ANY", "ANY"), lambda given: chosen(*given)),
    Scalar("greatest", ("SAME", "SAME*"), "greatest({all})", "="),
    Scalar("least", ("SAME", "SAME*"), "least({all})", "="),
    Scalar("isnull", ("ANY",), "({0} IS NULL)", "BOOLEAN"),
    Scalar("isnotnull", ("ANY",), "({0} IS NOT NULL)", "BOOLEAN"),
)
