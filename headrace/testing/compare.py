"""Two answers are the same when they hold the same rows, however ordered.

Text, booleans, NULL and whole numbers must be equal; as soon as one side is a double, numbers may
differ by 1e-9 of the larger, which is what summing in another order costs. A column named in
`approximate` may differ by the relative error given there. Every difference is one sentence.
tests/testing/test_compare.py reads the sentences.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

Answer = Sequence[Mapping[str, Any]]
AnswerRow = Mapping[str, Any]
_RELATIVE, _ABSOLUTE = 1e-9, 1e-12


def differences(
    expected: Answer, actual: Answer, approximate: Mapping[str, float] | None = None
) -> list[str]:
    """The differences of the actual answer, one sentence each.

    >>> differences([{"user": "a", "n": 2}], [{"user": "a", "n": 3}, {"user": "b", "n": 1}])
    ["row user='a': n should be 2 but is 3", "unexpected row user='b', n=1"]
    """
    tolerance = approximate or {}
    sentences: list[str] = []
    groups = _by_text(expected, actual, tolerance)
    for wanted, found in groups:
        wanted, found = _unmatched(wanted, found, tolerance)
        sentences += _explained(wanted, found, tolerance)
    return sentences


def same(wanted: Any, found: Any, relative: float = 0.0) -> bool:
    """Whether two values of an answer are the same.

    >>> same(3, 3.0), same(0.1 + 0.2, 0.3), same(1, True), same(100, 103, relative=0.05)
    (True, True, False, True)
    """
    if isinstance(wanted, list) and isinstance(found, list):
        pairs = zip(wanted, found, strict=False)
        return len(wanted) == len(found) and all(same(a, b, relative) for a, b in pairs)
    if isinstance(wanted, dict) and isinstance(found, dict):
        return wanted.keys() == found.keys() and all(
            same(wanted[name], found[name], relative) for name in wanted
        )
    if not (_number(wanted) and _number(found)):
        return type(wanted) is type(found) and bool(wanted == found)
    if wanted == found or (math.isnan(wanted) and math.isnan(found)):
        return True
    if isinstance(wanted, int) and isinstance(found, int):
        # Not by math.isclose, which would make doubles of them.
        return abs(wanted - found) <= relative * max(abs(wanted), abs(found))
    return math.isclose(wanted, found, rel_tol=max(relative, _RELATIVE), abs_tol=_ABSOLUTE)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _by_text(
    expected: Answer, actual: Answer, tolerance: Mapping[str, float]
) -> list[tuple[list[AnswerRow], list[AnswerRow]]]:
    """Rows that agree in everything but numbers; only these can be the same row."""
    groups: dict[str, tuple[list[AnswerRow], list[AnswerRow]]] = defaultdict(lambda: ([], []))
    for side, answer in enumerate((expected, actual)):
        for row in answer:
            groups[_text_of(row, tolerance)][side].append(row)
    return list(groups.values())


def _text_of(row: AnswerRow, tolerance: Mapping[str, float]) -> str:
    fixed = {
        name: value
        for name, value in row.items()
        if isinstance(value, str) and name not in tolerance
    }
    return repr(sorted(fixed.items(), key=lambda pair: pair[0]))


def _unmatched(
    wanted: list[AnswerRow], found: list[AnswerRow], tolerance: Mapping[str, float]
) -> tuple[list[AnswerRow], list[AnswerRow]]:
    left: list[AnswerRow] = []
    rest = list(found)
    for row in wanted:
        match = next((other for other in rest if not _wrong(row, other, tolerance)), None)
        if match is None:
            left.append(row)
        else:
            rest = [other for other in rest if other is not match]
    return left, rest


def _wrong(wanted: AnswerRow, found: AnswerRow, tolerance: Mapping[str, float]) -> list[str]:
    """The columns in which two rows differ."""
    names = [*wanted, *(name for name in found if name not in wanted)]
    return [name for name in names if not _same_in(name, wanted, found, tolerance)]


def _same_in(name: str, a: AnswerRow, b: AnswerRow, tolerance: Mapping[str, float]) -> bool:
    return name in a and name in b and same(a[name], b[name], tolerance.get(name, 0.0))


def _explained(
    wanted: list[AnswerRow], found: list[AnswerRow], tolerance: Mapping[str, float]
) -> list[str]:
    """Compare each expected row with the most similar row that is left; report the others as
    missing or unexpected.
    """
    sentences, rest = [], list(found)
    for row in wanted:
        if not rest:
            sentences.append(f"missing row {_shown(row)}")
            continue
        other = min(rest, key=lambda candidate: len(_wrong(row, candidate, tolerance)))
        rest = [candidate for candidate in rest if candidate is not other]
        sentences += _told(row, other, _wrong(row, other, tolerance))
    return sentences + [f"unexpected row {_shown(row)}" for row in rest]


def _told(wanted: AnswerRow, found: AnswerRow, wrong: list[str]) -> list[str]:
    where = _shown({name: value for name, value in wanted.items() if name not in wrong})
    return [
        f"row {where}: {_difference(name, wanted, found)}".replace("row :", "row:")
        for name in wrong
    ]


def _difference(name: str, wanted: AnswerRow, found: AnswerRow) -> str:
    if name not in found:
        return f"the column {name} is missing"
    if name not in wanted:
        return f"the column {name} is not expected"
    return f"{name} should be {wanted[name]!r} but is {found[name]!r}"


def _shown(row: AnswerRow) -> str:
    return ", ".join(f"{name}={_value(value)}" for name, value in row.items())


def _value(value: Any) -> str:
    if isinstance(value, dict) and set(value) == {"start", "end"}:
        return f"[{value['start']}, {value['end']})"
    return repr(value)
