"""Parses `MATCH_RECOGNIZE ( … )`: clauses, and the pattern as a tree.

Conditions and measures stay SQL text, in which navigation and aggregates have names that no other
function has (`nav_first`, `final_agg_sum`), so that every parser leaves them alone.
compile/match_recognize.py resolves the text. tests/define/test_match_recognize.py checks what is
read and what is refused.
"""

from __future__ import annotations

from headrace.core.pattern import RowsPerMatch, Selection, Skip
from headrace.define.definitions import MatchDefinition, NamedExpression
from headrace.define.pattern_parser import PatternReader
from headrace.define.tokens import TokenCursor

NAVIGATION = ("first", "last", "prev", "next", "classifier", "match_number", "match_id")
AGGREGATES = ("count", "sum", "avg", "min", "max", "collect_list", "array_agg")
# What these are called in the SQL text of a phrase.
OWN_CALLS = tuple(
    f"{final}{kind}_{word}"
    for kind, words in (("nav", NAVIGATION), ("agg", AGGREGATES))
    for word in words
    for final in ("", "final_")
)
_CLAUSES = (
    "MEASURES", "ONE ROW", "ALL ROWS", "AFTER MATCH", "PATTERN (", "SUBSET", "DEFINE", "ORDER BY",
    "INITIAL", "SEEK",
)  # fmt: skip
_EMPTY = {
    "SHOW EMPTY MATCHES": RowsPerMatch.SHOW_EMPTY,
    "OMIT EMPTY MATCHES": RowsPerMatch.OMIT_EMPTY,
    "WITH UNMATCHED ROWS": RowsPerMatch.UNMATCHED,
}


def read_match(tokens: TokenCursor) -> MatchDefinition:
    """The clause after the word MATCH_RECOGNIZE, from '(' to ')'."""
    tokens.expect("(")
    made = _Clauses(tokens).read()
    tokens.expect(")")
    return made


class _Clauses:
    """One clause after the other, in the standard's order."""

    def __init__(self, tokens: TokenCursor) -> None:
        self.tokens = tokens

    def read(self) -> MatchDefinition:
        tokens = self.tokens
        keys = tokens.names("a column") if tokens.accept("PARTITION BY") else ()
        tokens.expect("ORDER BY")
        order = tokens.listed(self.phrase)
        measures = tokens.listed(self.measure) if tokens.accept("MEASURES") else ()
        rows, skip = self.rows(), self.skip()
        tokens.expect("PATTERN")
        node = PatternReader(tokens).read()
        within_us, selection = self.within(), self.selection()
        subsets = tokens.listed(self.subset) if tokens.accept("SUBSET") else ()
        conditions = tokens.listed(self.condition) if tokens.accept("DEFINE") else ()
        if selection is Selection.ANY and skip is None:
            skip = Skip("to next row")
        return MatchDefinition(
            keys, order, measures, rows, skip or Skip(), node, within_us, selection, subsets,
            conditions,
        )  # fmt: skip

    def measure(self) -> NamedExpression:
        phrase = self.phrase(until="AS")
        self.tokens.expect("AS")
        return NamedExpression(self.tokens.name("the measure"), phrase.sql, phrase.origin)

    def condition(self) -> NamedExpression:
        name = self.tokens.name("a variable").upper()
        self.tokens.expect("AS")
        phrase = self.phrase()
        return NamedExpression(name, phrase.sql, phrase.origin)

    def subset(self) -> tuple[str, tuple[str, ...]]:
        name = self.tokens.name("the subset").upper()
        self.tokens.expect("=")
        if not self.tokens.starts_with("("):
            self.tokens.expect("(")
        return name, tuple(n.upper() for n in self.tokens.names("a variable"))

    def phrase(self, until: str = "") -> NamedExpression:
        """SQL up to a comma, a closing parenthesis, the next clause or a word."""
        tokens, origin, depth, words = self.tokens, self.tokens.origin, 0, list[str]()
        first = tokens.at
        while not tokens.done:
            word = tokens.peek()
            if depth == 0 and (word in {",", ")", until} - {""} or self.at_clause()):
                break
            depth += (word in {"(", "["}) - (word in {")", "]"})
            words.append(self.spoken())
            tokens.at += 1
        if tokens.at == first:
            raise tokens.error("expected an expression")
        return NamedExpression("", " ".join(word for word in words if word), origin)

    def spoken(self) -> str:
        """A token as it stands in the text, navigation and aggregates by their own names."""
        tokens = self.tokens
        before, word, after = (tokens.peek(number).lower() for number in (-1, 0, 1))
        if word in {"running", "final"} and tokens.peek(2) == "(":
            if after not in ("first", "last", *AGGREGATES):
                raise tokens.error(
                    "RUNNING and FINAL are only allowed before FIRST, LAST or an aggregate"
                )
            return ""
        if word in (*NAVIGATION, *AGGREGATES) and after == "(" and before != ".":
            final = "final_" if before == "final" else ""
            kind = "nav" if word in NAVIGATION else "agg"
            return f"{final}{kind}_{word.replace('array_agg', 'collect_list')}"
        token = tokens.tokens[tokens.at]
        return tokens.text[token.start : token.end + 1]

    def at_clause(self) -> bool:
        return any(map(self.tokens.starts_with, _CLAUSES))

    def rows(self) -> RowsPerMatch:
        if self.tokens.accept("ALL ROWS PER MATCH"):
            said = (rows for words, rows in _EMPTY.items() if self.tokens.accept(words))
            return next(said, RowsPerMatch.SHOW_EMPTY)
        self.tokens.accept("ONE ROW PER MATCH")
        return RowsPerMatch.ONE

    def skip(self) -> Skip | None:
        if not self.tokens.accept("AFTER MATCH SKIP"):
            return None
        if self.tokens.accept("PAST LAST ROW"):
            return Skip()
        if self.tokens.accept("TO NEXT ROW"):
            return Skip("to next row")
        self.tokens.expect("TO")
        first = self.tokens.accept("FIRST")
        if not first:
            self.tokens.accept("LAST")
        return Skip("to first" if first else "to last", self.tokens.name("a variable").upper())

    def within(self) -> int | None:
        if not self.tokens.accept("WITHIN"):
            return None
        origin = self.tokens.origin
        self.tokens.expect("INTERVAL")
        length_us = self.tokens.interval()
        if length_us <= 0:
            raise self.tokens.error("the interval must be greater than zero", origin)
        return length_us

    def selection(self) -> Selection:
        if not self.tokens.accept("SKIP TILL"):
            return Selection.STRICT
        if self.tokens.accept("ANY"):
            return Selection.ANY
        self.tokens.expect("NEXT")
        return Selection.NEXT
