"""A detection as a tree: tests of one column each, joined by AllOf, AnyOf and Not.

A test that meets NULL is not true, and `Not` of it is true, as in Sigma: `sql.py` keeps this law
where SQL has another. tests/define/sigma/test_sql.py checks it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Glob:
    """A text with wildcards: literals, and None for `*`, and "" for `?`."""

    parts: tuple[str | None, ...]
    cased: bool = False


@dataclass(frozen=True, slots=True)
class Equal:
    """Equal to a number or truth value."""

    value: int | float | bool


@dataclass(frozen=True, slots=True)
class Compare:
    operator: str  # <, <=, > or >=
    value: int | float


@dataclass(frozen=True, slots=True)
class Regex:
    pattern: str


@dataclass(frozen=True, slots=True)
class Present:
    """Is there, or is NULL."""

    there: bool


@dataclass(frozen=True, slots=True)
class Same:
    """Equal to another field."""

    field: str


Check = Glob | Equal | Compare | Regex | Present | Same


@dataclass(frozen=True, slots=True)
class Test:
    """What a field must be."""

    field: str
    check: Check


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Not:
    part: Tree


Tree = Test | AllOf | AnyOf | Not


def all_of(parts: Iterable[Tree]) -> Tree:
    """Their conjunction; what is one already is taken apart."""
    flat = [p for part in parts for p in (part.parts if isinstance(part, AllOf) else (part,))]
    return flat[0] if len(flat) == 1 else AllOf(tuple(flat))


def any_of(parts: Iterable[Tree]) -> Tree:
    """Their disjunction; what is one already is taken apart."""
    flat = [p for part in parts for p in (part.parts if isinstance(part, AnyOf) else (part,))]
    return flat[0] if len(flat) == 1 else AnyOf(tuple(flat))


def leaves(tree: Tree) -> Iterator[Test]:
    """All tests of a tree, from left to right."""
    if isinstance(tree, Test):
        yield tree
    elif isinstance(tree, Not):
        yield from leaves(tree.part)
    else:
        for part in tree.parts:
            yield from leaves(part)
