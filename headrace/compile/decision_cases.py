"""One CASE expression per field that decision rules set.

FIRST MATCH is a CASE in the order of the rules, including the rules that do not set the field. ALL
MATCHES is a CASE from the last rule that sets the field to the first.
tests/compile/test_decision_rules.py reads both, tests/transcripts/rules_*.yaml define the
semantics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from headrace.define.dialect import sql_of
from headrace.define.rules import ELSE, DecisionRules


@dataclass(frozen=True, slots=True)
class Branch:
    """A rule as SQL: its condition, and its values by lowercase field name."""

    name: str
    condition: str
    values: dict[str, str]


def field_items(
    rules: DecisionRules,
    names: Sequence[str],
    alias: str,
    branches: list[Branch],
    otherwise: Branch | None,
) -> dict[str, str]:
    """The select item of each field and of the decision, by lowercase name."""
    known = {name.lower() for name in names}
    write = _last_match if rules.all_matches else _first_match
    items = {}
    for field in rules.fields:
        own = f"{alias}.`{field}`" if field.lower() in known else "NULL"
        items[field.lower()] = f"{write(field.lower(), own, branches, otherwise)} AS `{field}`"
    decision = (
        _decisions(branches, otherwise) if rules.all_matches else _decision(branches, otherwise)
    )
    return items | {rules.column.lower(): f"{decision} AS `{rules.column}`"}


def _first_match(field: str, own: str, branches: list[Branch], otherwise: Branch | None) -> str:
    pairs = [(branch.condition, branch.values.get(field, own)) for branch in branches]
    return _case(pairs, otherwise.values.get(field, own) if otherwise else own)


def _last_match(field: str, own: str, branches: list[Branch], otherwise: Branch | None) -> str:
    setting = [branch for branch in reversed(branches) if field in branch.values]
    pairs = [(branch.condition, branch.values[field]) for branch in setting]
    others = [branch for branch in branches if field not in branch.values]
    if otherwise is None or field not in otherwise.values:
        return _case(pairs, own)
    # ELSE applies only if no rule matches, including the rules that do not set this field.
    pairs += [(_any(others), own)] if others else []
    return _case(pairs, otherwise.values[field])


def _decision(branches: list[Branch], otherwise: Branch | None) -> str:
    pairs = [(branch.condition, _text(branch.name)) for branch in branches]
    return _case(pairs, _text(ELSE) if otherwise else "NULL")


def _decisions(branches: list[Branch], otherwise: Branch | None) -> str:
    each = [f"CASE WHEN {branch.condition} THEN {_text(branch.name)} END" for branch in branches]
    found = f"array_compact(array({', '.join(each)}))"
    return _case([(_any(branches), found)], f"array({_text(ELSE)})") if otherwise else found


def _case(pairs: list[tuple[str, str]], default: str) -> str:
    while pairs and pairs[-1][1] == default:
        pairs = pairs[:-1]
    if not pairs:
        return default
    whens = " ".join(f"WHEN {condition} THEN {value}" for condition, value in pairs)
    return f"CASE {whens}{'' if default == 'NULL' else f' ELSE {default}'} END"


def _any(branches: list[Branch]) -> str:
    return " OR ".join(f"({branch.condition})" for branch in branches)


def _text(name: str) -> str:
    return sql_of(exp.Literal.string(name))
