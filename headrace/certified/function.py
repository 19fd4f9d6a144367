"""A function of Spark's: what it takes, what it gives, and its form in DuckDB.

`takes` names a kind for each argument; the last may end with `*`, for any number of them:
  a type    the argument is cast to it as Spark does implicitly; with `!`, it must be of it
  NUMBER    any number; a text becomes a double
  INTEGER   any integer
  SAME      all of these become the widest type among them
  ANY       whatever it is
  ARRAY, MAP, COLLECTION  a list, a map, or one of them, of any elements
  LITERAL   a literal, which `duck` reads
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from headrace.certified.casts import cast
from headrace.certified.typed import TypedSql, combine, not_available
from headrace.certified.types import (
    BOOLEAN,
    DOUBLE,
    INTEGERS,
    NTZ,
    STRING,
    TIMES,
    VOID,
    has_order,
    is_numeric,
    widest,
)
from headrace.core.errors import BadQuery

Make = Callable[[Sequence[TypedSql]], TypedSql]


@dataclass(frozen=True, slots=True)
class Scalar:
    """One form of a function. `duck` is a template over {0}, {1}, …, or makes the whole."""

    name: str
    takes: tuple[str, ...]
    duck: str | Make
    gives: str = ""  # the type; "=" for that of the first argument
    rounded: bool = False  # its last digits may be others in Spark

    @property
    def variadic(self) -> bool:
        return bool(self.takes) and self.takes[-1].endswith("*")

    def accepts(self, count: int) -> bool:
        return count >= len(self.takes) if self.variadic else count == len(self.takes)

    def call(self, arguments: Sequence[TypedSql]) -> TypedSql:
        taken = self._taken(arguments)
        if not isinstance(self.duck, str):
            return self.duck(taken)
        if not any(kind.startswith("SAME") for kind in self.takes):
            taken = [value.deciding() for value in taken]  # by the edges of the function's domain
        gives = taken[0].type if self.gives == "=" else self.gives
        sql = [value.sql for value in taken]
        made = combine(taken, self.duck.format(*sql, all=", ".join(sql)), gives)
        return replace(made, rounded=self.name) if self.rounded else made

    def _taken(self, arguments: Sequence[TypedSql]) -> list[TypedSql]:
        kinds = [kind.removesuffix("*") for kind in self.takes]
        kinds += kinds[-1:] * (len(arguments) - len(kinds))
        same = [value.type for value, kind in zip(arguments, kinds, strict=True) if kind == "SAME"]
        common = widest(same, text=self.name not in {"greatest", "least"}) if same else None
        ordered = self.name not in {"greatest", "least"} or has_order(common or "")
        if same and (common is None or not ordered):
            raise not_available(f"{self.name} of {' and '.join(dict.fromkeys(same))}")
        return [
            cast(value, common or "") if kind == "SAME" else self._argument(value, kind)
            for value, kind in zip(arguments, kinds, strict=True)
        ]

    def _argument(self, value: TypedSql, kind: str) -> TypedSql:
        match kind:
            case "ANY" | "ARRAY" | "MAP" | "COLLECTION":
                return value
            case "LITERAL" if value.literal is not None:
                return value
            case "LITERAL":
                raise not_available(f"{self.name} with an argument that is not a literal")
            case "NUMBER" if is_numeric(value.type):
                return value
            case "NUMBER" if value.type in (STRING, VOID):
                return cast(value, DOUBLE)
            case "INTEGER" if value.type in INTEGERS:
                return value
        exact, kind = kind.endswith("!"), kind.removesuffix("!")
        if (exact and value.type not in (kind, VOID)) or not implicit(value.type, kind):
            raise not_available(f"{self.name} of {value.type}")
        return cast(value, kind)


def implicit(source: str, target: str) -> bool:
    """Whether Spark casts an argument of this type implicitly."""
    if source in (target, VOID):
        return True
    if target == STRING:
        return is_numeric(source) or source in TIMES or source == BOOLEAN
    if source == STRING:
        return is_numeric(target) or target in TIMES
    if source == NTZ:
        return target in TIMES
    return (is_numeric(source) and is_numeric(target)) or {source, target} == set(TIMES)


def wrong_arity(name: str, counts: Sequence[int], given: int, prefix: str = "") -> BadQuery:
    """
    >>> wrong_arity("substring", (2, 3), 1).message
    'substring expects 2 or 3 arguments, got 1'
    """
    *others, last = sorted(set(counts))
    listed = f"{', '.join(map(str, others))} or {last}" if others else str(last)
    noun = "argument" if listed == "1" else "arguments"
    return BadQuery(f"{name} expects {prefix}{listed} {noun}, got {given}")


def scalar_arity(name: str, forms: Sequence[Scalar], given: int) -> BadQuery:
    """The error for a function of which no form has this number of arguments."""
    counts = [len(form.takes) for form in forms]
    if any(form.variadic for form in forms):
        return wrong_arity(name, [min(counts)], given, "at least ")
    return wrong_arity(name, counts, given)


def rows(*functions: Scalar, also: dict[str, str] | None = None) -> tuple[Scalar, ...]:
    """Functions, and their synonyms."""
    second = [
        replace(row, name=name)
        for name, meant in (also or {}).items()
        for row in functions
        if row.name == meant
    ]
    return (*functions, *second)
