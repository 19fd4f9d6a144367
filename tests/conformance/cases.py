"""The cases of the conformance suite: small tables, a MATCH_RECOGNIZE, and the rows that it gives.

A file is a chapter, a list of cases:

    name       a sentence
    letters    one row of the key p for each letter: t = 1, 2, … seconds, v = the letter, x = t
    rows       or the rows as lists [k, t, v, x]; t in seconds
    match      what stands between the parentheses of MATCH_RECOGNIZE
    select     the select list, if it is not *; the matches are `m`
    expect     the rows that come out, in any order, as lists
    refused    or the condition of the error, and the `sentence` that the reference says
    world      closed, if the case is about the end of the input; open, if about a stream; or both

In the open world every key has one more row, long after the others, in which v and x are NULL: a
case whose pattern could take that row, or says something of it, is of the closed world only.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.testing.short_forms import expected_value
from headrace.testing.transcript_parser import yaml_of

COLUMNS = ("k", "t", "v", "x")
_KNOWN = {
    "name", "letters", "rows", "match", "select", "expect", "refused", "sentence", "world",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    chapter: str
    name: str
    rows: tuple[tuple[Any, ...], ...]
    query: str
    expect: tuple[list[Any], ...] = ()
    refused: str | None = None
    sentence: str | None = None
    world: str | None = None

    @property
    def keys(self) -> list[Any]:
        return list(dict.fromkeys(row[0] for row in self.rows))

    @property
    def end(self) -> float:
        """The time of the last row."""
        return max((row[1] for row in self.rows if row[1] is not None), default=0)


def cases_of(path: Path) -> list[Case]:
    return [_case(path.stem, said) for said in yaml_of(path.read_text("utf-8"))]


def _case(chapter: str, said: dict[str, Any]) -> Case:
    assert set(said) <= _KNOWN, f"{said['name']}: {set(said) - _KNOWN}"
    select = said.get("select", "*")
    return Case(
        chapter,
        said["name"],
        rows=_rows(said),
        query=f"SELECT {select} FROM s MATCH_RECOGNIZE (\n{said['match']}\n) AS m",
        expect=tuple(expected_value(row) for row in said.get("expect", ())),
        refused=said.get("refused"),
        sentence=said.get("sentence"),
        world=said.get("world"),
    )


def _rows(said: dict[str, Any]) -> tuple[tuple[Any, ...], ...]:
    letters = str(said.get("letters", ""))
    counted = [("p", number, letter, number) for number, letter in enumerate(letters, start=1)]
    return tuple(tuple(row) for row in said.get("rows", counted))
