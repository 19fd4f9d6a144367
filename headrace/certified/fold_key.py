"""The text of a key of a fold, as Spark writes it: the JSON of a struct of its parts.

A state is found again by this text, so both engines must write the same one. Texts, whole numbers
and booleans do; a key of other parts is left to Spark. tests/certified/test_fold_key.py compares
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headrace.certified.function import Scalar
from headrace.certified.lifts import LIFTS
from headrace.certified.typed import TypedSql, combine, not_available, text_literal
from headrace.certified.types import BOOLEAN, INTEGERS, STRING

FOLD_KEY = "_fold_key"


def _fold_key(arguments: Sequence[TypedSql]) -> TypedSql:
    """`arguments` are names, each with its part."""
    names, parts = arguments[::2], arguments[1::2]
    pairs = [
        f"{text_literal(_json_name(name.literal or ''))} || {_json(part)}"
        for name, part in zip(names, parts, strict=True)
    ]
    return combine(parts, f"""('{{' || {" || ',' || ".join(pairs)} || '}}')""", STRING)


def _json_name(name: str) -> str:
    if not name.isidentifier():
        raise not_available(f"a fold by '{name}'")
    return f'"{name}":'


def _json(part: TypedSql) -> str:
    if part.type == STRING:
        return f"coalesce(CAST(to_json({part.sql}) AS VARCHAR), 'null')"
    if part.type in INTEGERS or part.type == BOOLEAN:
        return f"coalesce(CAST({part.sql} AS VARCHAR), 'null')"
    raise not_available(f"a fold by {part.type}")


FOLDS = replace(
    LIFTS, scalars={**LIFTS.scalars, FOLD_KEY: [Scalar(FOLD_KEY, ("ANY*",), _fold_key)]}
)
