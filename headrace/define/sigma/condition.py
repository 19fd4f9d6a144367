"""Reads `selection and not 1 of filter_*`: NOT binds closest, then AND, then OR.

tests/define/sigma/test_sql.py checks what it means, test_values.py reads the refusals.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from headrace.define.sigma.tree import Not, Tree, all_of, any_of

_WORD = re.compile(r"\s*(\(|\)|\||[^\s()|]+)")
_DEPTH_MAX = 100


def read_condition(text: str, selections: dict[str, Tree]) -> Tree:
    """The tree of a condition over selections; a ValueError says what is not understood."""
    reader = _Reader(text, selections)
    if "|" in reader.words:
        raise ValueError(
            f"the condition '{text}' has an aggregation after '|'; write a correlation rule instead"
        )
    tree = reader.any()
    if reader.words:
        raise ValueError(f"the condition '{text}' has an unexpected '{reader.words[0]}'")
    return tree


class _Reader:
    """The words that are left."""

    def __init__(self, text: str, selections: dict[str, Tree]) -> None:
        self.text, self.selections = text, selections
        self.words = _WORD.findall(text)
        self.depth = 0

    def any(self) -> Tree:
        parts = [self.all()]
        while self.accept("or"):
            parts.append(self.all())
        return any_of(parts)

    def all(self) -> Tree:
        parts = [self.one()]
        while self.accept("and"):
            parts.append(self.one())
        return all_of(parts)

    def one(self) -> Tree:
        self.depth += 1
        if self.depth > _DEPTH_MAX:
            raise ValueError(f"the condition is nested more than {_DEPTH_MAX} levels deep")
        tree = self.inner()
        self.depth -= 1
        return tree

    def inner(self) -> Tree:
        if self.accept("not"):
            return Not(self.one())
        if self.accept("("):
            tree = self.any()
            if not self.accept(")"):
                raise ValueError(f"the condition '{self.text}' is missing a ')'")
            return tree
        word = self.word()
        if self.accept("of"):
            return self.several(word)
        if word not in self.selections:
            raise ValueError(f"'{word}' in the condition is not a selection")
        return self.selections[word]

    def several(self, many: str) -> Tree:
        """`1 of …` or `all of …`."""
        which = self.word()
        if many.lower() not in {"1", "any", "all"}:
            raise ValueError(f"'{many} of {which}' is not supported; use '1 of' or 'all of'")
        # A selection whose name begins with '_' is kept out of 'them', as Sigma says.
        found = [
            tree
            for name, tree in self.selections.items()
            if (which.lower() == "them" and not name.startswith("_")) or fnmatchcase(name, which)
        ]
        if not found:
            raise ValueError(f"'{which}' in the condition is not a selection")
        return all_of(found) if many.lower() == "all" else any_of(found)

    def accept(self, word: str) -> bool:
        found = bool(self.words) and self.words[0].lower() == word
        if found:
            self.words.pop(0)
        return found

    def word(self) -> str:
        if not self.words or self.words[0] in "()":
            raise ValueError(f"the condition '{self.text}' is missing the name of a selection")
        word: str = self.words.pop(0)
        return word
