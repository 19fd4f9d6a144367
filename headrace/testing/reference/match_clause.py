"""The text of `FROM stream MATCH_RECOGNIZE ( … )` in parts: `clause_of(query)`.

The parts come in the order of the standard, each at most once. What each part says is read here;
expressions stay text, since what their names mean depends on the stream.
tests/testing/test_match_clause.py checks it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from headrace.core.errors import BadDefinition, Unsupported
from headrace.testing.reference.patterns import Pattern, pattern_of
from headrace.testing.reference.timestamps import interval
from headrace.testing.reference.tokenizer import (
    TextToken,
    closing,
    listed,
    name_in,
    plain,
    text_tokens,
)

_PARTS = (
    ("PARTITION", "BY"),
    ("ORDER", "BY"),
    ("MEASURES",),
    ("ONE", "ROW", "PER", "MATCH"),
    ("ALL", "ROWS", "PER", "MATCH"),
    ("AFTER", "MATCH", "SKIP"),
    ("PATTERN", "("),
    ("WITHIN",),
    ("SKIP", "TILL"),
    ("SUBSET",),
    ("DEFINE",),
)
_EMPTY = ("", "SHOW EMPTY MATCHES", "OMIT EMPTY MATCHES", "WITH UNMATCHED ROWS")


@dataclass(frozen=True, slots=True)
class SkipClause:
    """Where the search continues: `to` is PAST, NEXT, FIRST or LAST, the last two of a variable."""

    to: str
    variable: str = ""


@dataclass(frozen=True, slots=True)
class MatchClause:
    """A parsed MATCH_RECOGNIZE; `query` is the SELECT without it."""

    query: str
    stream: str
    keys: tuple[str, ...]
    time: str
    pattern: Pattern
    skip: SkipClause
    measures: Mapping[str, str] = field(default_factory=dict)
    all_rows: bool = False
    omit_empty: bool = False
    unmatched: bool = False
    within_us: int | None = None
    till: str = ""
    subsets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    defined: Mapping[str, str] = field(default_factory=dict)


def clause_of(text: str) -> MatchClause | None:
    """The MATCH_RECOGNIZE of a query, if it has one."""
    text = plain(text)
    pieces = text_tokens(text)
    words = [piece.word for piece in pieces]
    if "MATCH_RECOGNIZE" not in words:
        return None
    number = words.index("MATCH_RECOGNIZE")
    if number == 0 or [piece.text for piece in pieces[number + 1 : number + 2]] != ["("]:
        raise BadDefinition("MATCH_RECOGNIZE requires a stream before it and '(' after it")
    last = closing(pieces, number + 1)
    body = text[pieces[number + 1].end : pieces[last].start]
    query = text[: pieces[number].start] + text[pieces[last].end :]
    return _clause(query, name_in(pieces[number - 1].text), _sections(body))


def _clause(query: str, stream: str, said: dict[str, str]) -> MatchClause:
    if "ORDER BY" not in said or "PATTERN (" not in said:
        raise BadDefinition("MATCH_RECOGNIZE requires an ORDER BY and a PATTERN")
    empty = _empty(said)
    till = _till(said.get("SKIP TILL"))
    return MatchClause(
        query,
        stream,
        keys=tuple(name_in(key).lower() for key in _list(said, "PARTITION BY")),
        time=_time(said["ORDER BY"]),
        pattern=pattern_of(_inside(said["PATTERN ("])),
        skip=_skip(said.get("AFTER MATCH SKIP"), till),
        measures=_measures(_list(said, "MEASURES")),
        all_rows="ALL ROWS PER MATCH" in said,
        omit_empty=empty.startswith("OMIT"),
        unmatched=empty.startswith("WITH"),
        within_us=_within_us(said["WITHIN"]) if "WITHIN" in said else None,
        till=till,
        subsets=_subsets(_list(said, "SUBSET")),
        defined=_defined(_list(said, "DEFINE")),
    )


def _sections(body: str) -> dict[str, str]:
    """The text of each part by the words that it begins with."""
    found: dict[str, str] = {}
    starts = [*_starts(body), (len(body), len(body), -1)]
    if body[: starts[0][0]].strip():
        raise BadDefinition(f"MATCH_RECOGNIZE must not begin with: {body.strip()[:40]}")
    for (_, end, rank), (following, _, then) in pairwise(starts):
        if 0 <= then <= rank:
            raise BadDefinition(f"{_said(then)} is in the wrong position in MATCH_RECOGNIZE")
        found[" ".join(_PARTS[rank])] = body[end:following].strip()
    return found


def _said(rank: int) -> str:
    return " ".join(_PARTS[rank]).strip(" (")


def _starts(body: str) -> Iterator[tuple[int, int, int]]:
    """Where the words of a part begin and end, and which part it is."""
    pieces, depth = text_tokens(body), 0
    for number, piece in enumerate(pieces):
        before = pieces[number - 1].word or pieces[number - 1].text if number else ""
        rank = _rank(pieces[number:]) if depth == 0 and before not in {".", "AS"} else None
        if rank is not None:
            words = len(_PARTS[rank]) - (_PARTS[rank][-1] == "(")
            yield piece.start, pieces[number + words - 1].end, rank
        depth += (piece.text == "(") - (piece.text == ")")


def _rank(pieces: list[TextToken]) -> int | None:
    words = tuple(piece.word or piece.text for piece in pieces[:4])
    ranks = (rank for rank, part in enumerate(_PARTS) if words[: len(part)] == part)
    return next(ranks, None)


def _list(said: dict[str, str], part: str) -> list[str]:
    return list(listed(said[part])) if part in said else []


def _inside(text: str) -> str:
    """What is in the parentheses that the text is."""
    pieces = text_tokens(text)
    if not pieces or pieces[0].text != "(" or closing(pieces, 0) != len(pieces) - 1:
        raise BadDefinition(f"expected a list in parentheses, got: {text[:40]}")
    return text[pieces[0].end : pieces[-1].start]


def _time(text: str) -> str:
    words = text.split()
    if len(words) == 2 and words[1].upper() == "ASC":
        words = words[:1]
    if len(words) != 1 or "," in text:
        raise BadDefinition("MATCH_RECOGNIZE requires ORDER BY the event time, ascending")
    return name_in(words[0]).lower()


def _empty(said: dict[str, str]) -> str:
    """What follows ALL ROWS PER MATCH."""
    if said.get("ONE ROW PER MATCH"):
        raise BadDefinition(f"{said['ONE ROW PER MATCH']} is not allowed with ONE ROW PER MATCH")
    found = " ".join(said.get("ALL ROWS PER MATCH", "").upper().split())
    if found not in _EMPTY:
        raise BadDefinition(f"{found} is not allowed with ALL ROWS PER MATCH")
    if "ONE ROW PER MATCH" in said and "ALL ROWS PER MATCH" in said:
        raise BadDefinition("ALL ROWS PER MATCH is not allowed with ONE ROW PER MATCH")
    return found


def _till(text: str | None) -> str:
    found = (text or "").upper()
    if text is not None and found not in {"NEXT", "ANY"}:
        raise BadDefinition(f"expected NEXT or ANY after SKIP TILL, got {text}")
    return found


def _skip(text: str | None, till: str) -> SkipClause:
    words = (text or "").upper().replace("`", "").split()
    if text is None:
        return SkipClause("NEXT" if till == "ANY" else "PAST")
    if words == ["PAST", "LAST", "ROW"]:
        return SkipClause("PAST")
    if words == ["TO", "NEXT", "ROW"]:
        return SkipClause("NEXT")
    if words[:1] == ["TO"] and len(words) == 2:
        return SkipClause("LAST", words[1])
    if words[:1] == ["TO"] and len(words) == 3 and words[1] in {"FIRST", "LAST"}:
        return SkipClause(words[1], words[2])
    raise BadDefinition(f"AFTER MATCH SKIP does not support: {text}")


def _measures(items: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for item in items:
        names = [piece for piece in text_tokens(item) if piece.word == "AS"]
        if not names or closes(item[names[-1].end :]):
            raise BadDefinition(f"a measure has no name: {item}", hint="name it with AS.")
        name = name_in(item[names[-1].end :])
        if name.lower() in map(str.lower, found):
            raise BadDefinition(f"duplicate measure '{name}'")
        found[name] = item[: names[-1].start]
    return found


def closes(text: str) -> bool:
    """Whether a parenthesis closes that was opened before."""
    return any(piece.text == ")" for piece in text_tokens(text))


def _subsets(items: list[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for item in items:
        name, _, members = item.partition("=")
        upper = name_in(name).upper()
        if upper in found:
            raise BadDefinition(f"duplicate SUBSET {upper}")
        found[upper] = tuple(name_in(one).upper() for one in listed(_inside(members)))
    return found


def _defined(items: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for item in items:
        pieces = text_tokens(item)
        if len(pieces) < 3 or pieces[1].word != "AS":
            raise BadDefinition(f"DEFINE requires a variable AS a condition, got: {item}")
        name = name_in(pieces[0].text).upper()
        if name in found:
            raise BadDefinition(f"pattern variable {name} is defined twice")
        found[name] = item[pieces[1].end :].strip()
    return found


def _within_us(text: str) -> int:
    words = text.replace("'", " ").split()
    if not words or words[0].upper() != "INTERVAL":
        raise BadDefinition(f"expected INTERVAL after WITHIN, got: {text}")
    try:
        length_us = interval(" ".join(words[1:]), None).us
    except Unsupported as problem:
        raise BadDefinition(f"WITHIN does not support {text}", detail=problem.detail) from problem
    if length_us <= 0:
        raise BadDefinition(f"WITHIN must be positive, got {text}")
    return length_us
