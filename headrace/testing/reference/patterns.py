"""The pattern of MATCH_RECOGNIZE as a tree: `pattern_of("a (b | c)+? NOT d e")`.

Variables are in upper case. Parentheses are gone, and so is exclusion `{- … -}`: it is a flag of
each step inside it. What is well formed but makes no sense is refused by `refusals.py`.
tests/testing/test_patterns.py has a table of patterns and refusals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headrace.core.errors import BadDefinition
from headrace.testing.reference.tokenizer import TextToken, text_tokens


@dataclass(frozen=True, slots=True)
class RowPattern:
    """One row of the variable; an excluded row is matched, but not output."""

    variable: str
    excluded: bool = False


@dataclass(frozen=True, slots=True)
class NotPattern:
    """Rows that are not the variable's are skipped."""

    variable: str


@dataclass(frozen=True, slots=True)
class StartAnchor:
    """`^`"""


@dataclass(frozen=True, slots=True)
class EndAnchor:
    """`$`"""


@dataclass(frozen=True, slots=True)
class SequencePattern:
    """One after the other; without parts, the empty pattern."""

    parts: tuple[Pattern, ...] = ()


@dataclass(frozen=True, slots=True)
class ChoicePattern:
    """Any one of the parts, the left rather than the right."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class PermutePattern:
    """All parts, in any order."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class RepeatPattern:
    """At least `low` and at most `high` times, greedy or reluctant."""

    part: Pattern
    low: int
    high: int | None
    reluctant: bool = False


Pattern = (
    RowPattern
    | NotPattern
    | StartAnchor
    | EndAnchor
    | SequencePattern
    | ChoicePattern
    | PermutePattern
    | RepeatPattern
)
_SHORT: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


def pattern_of(text: str) -> Pattern:
    """Read a pattern.

    >>> pattern_of("b+?")
    RepeatPattern(part=RowPattern(variable='B', excluded=False), low=1, high=None, reluctant=True)
    """
    reader = _Reader(text_tokens(text))
    found = reader.choice()
    if reader.left:
        raise _unexpected(reader.left[0].text)
    return found


def leaves(pattern: Pattern) -> Iterator[RowPattern | NotPattern | StartAnchor | EndAnchor]:
    """The parts that have no parts, as they were written."""
    if isinstance(pattern, RepeatPattern):
        yield from leaves(pattern.part)
    elif isinstance(pattern, SequencePattern | ChoicePattern | PermutePattern):
        for part in pattern.parts:
            yield from leaves(part)
    else:
        yield pattern


def variables(pattern: Pattern) -> list[str]:
    """Every variable of the pattern once, those of NOT too."""
    named = [leaf.variable for leaf in leaves(pattern) if isinstance(leaf, RowPattern | NotPattern)]
    return list(dict.fromkeys(named))


@dataclass
class _Reader:
    """What is left to read, and whether it is inside an exclusion."""

    left: list[TextToken]
    excluded: bool = False

    def choice(self) -> Pattern:
        parts = [self._sequence()]
        while self._accept("|"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else ChoicePattern(tuple(parts))

    def _sequence(self) -> Pattern:
        parts: list[Pattern] = []
        while self.left and not self._ends():
            parts.append(self._quantified())
        if not parts:
            raise BadDefinition(
                "a part of the pattern is missing", hint="write () for the empty pattern."
            )
        return parts[0] if len(parts) == 1 else SequencePattern(tuple(parts))

    def _ends(self) -> bool:
        return self.left[0].text in {"|", ")", ","} or self._next("-", "}")

    def _quantified(self) -> Pattern:
        part = self._primary()
        bounds = self._bounds()
        if bounds is None:
            return part
        if isinstance(part, NotPattern):
            raise BadDefinition(f"NOT {part.variable} must not have a quantifier")
        if self.left and self.left[0].text in _SHORT and not self._next("?"):
            raise _unexpected(self.left[0].text)
        return RepeatPattern(part, *bounds, reluctant=self._accept("?"))

    def _primary(self) -> Pattern:
        if self._accept("("):
            return self._group()
        if self._accept("^"):
            return StartAnchor()
        if self._accept("$"):
            return EndAnchor()
        if self._accept("{", "-"):
            return self._exclusion()
        if self._accept("PERMUTE", "("):
            return self._permute()
        if self._accept("NOT"):
            return NotPattern(self._variable("expected a pattern variable after NOT"))
        return RowPattern(self._variable("expected a pattern variable"), self.excluded)

    def _group(self) -> Pattern:
        if self._accept(")"):
            return SequencePattern()
        found = self.choice()
        self._expect(")")
        return found

    def _exclusion(self) -> Pattern:
        before, self.excluded = self.excluded, True
        found = self.choice()
        self._expect("-", "}")
        self.excluded = before
        return found

    def _permute(self) -> Pattern:
        parts = [self.choice()]
        while self._accept(","):
            parts.append(self.choice())
        self._expect(")")
        return PermutePattern(tuple(parts))

    def _variable(self, otherwise: str) -> str:
        piece = self.left.pop(0) if self.left else None
        name = piece.text.strip("`") if piece else ""
        if not name.replace("_", "a").isalnum() or name[:1].isdigit():
            raise BadDefinition(otherwise, detail=f"got '{name}'.")
        return name.upper()

    def _bounds(self) -> tuple[int, int | None] | None:
        if self.left and self.left[0].text in _SHORT:
            return _SHORT[self.left.pop(0).text]
        if not self._next("{") or self._next("{", "-"):
            return None
        self._expect("{")
        low = self._number()
        high = self._number() if self._accept(",") else low or 0
        self._expect("}")
        return _checked(low or 0, high)

    def _number(self) -> int | None:
        return int(self.left.pop(0).text) if self.left and self.left[0].text.isdigit() else None

    def _next(self, *texts: str) -> bool:
        found = [piece.word or piece.text for piece in self.left[: len(texts)]]
        return found == list(texts)

    def _accept(self, *texts: str) -> bool:
        if not self._next(*texts):
            return False
        del self.left[: len(texts)]
        return True

    def _expect(self, *texts: str) -> None:
        if not self._accept(*texts):
            found = f"'{self.left[0].text}'" if self.left else "the end"
            raise BadDefinition(f"expected '{''.join(texts)}' in the pattern, got {found}")


def _checked(low: int, high: int | None) -> tuple[int, int | None]:
    if high is not None and high < 1:
        raise BadDefinition("the maximum of a quantifier must be at least 1")
    if high is not None and high < low:
        raise BadDefinition(f"the minimum of a quantifier, {low}, exceeds its maximum, {high}")
    return low, high


def _unexpected(text: str) -> BadDefinition:
    return BadDefinition(f"unexpected '{text}' in the pattern")
