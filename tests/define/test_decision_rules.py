"""What CREATE RULES becomes. What is refused is in tests/plans/error_rules_*.sql."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.core.errors import BadDefinition
from headrace.core.origin import Origin
from headrace.define.definitions import QueryDefinition
from headrace.define.rules import DecisionRules
from headrace.define.statements import read_statements


def one(text: str, folder: Path = Path()) -> QueryDefinition:
    (definition,) = read_statements(text, "calls.sql", folder)
    assert isinstance(definition, QueryDefinition)
    return definition


def rules(text: str) -> DecisionRules:
    found = one(f"CREATE RULES d ON calls {text}").rules
    assert found is not None
    return found


def said(made: DecisionRules) -> dict[str, list[str]]:
    return {
        rule.name: [test.text for test in rule.tests] + [f"{n}={v.text}" for n, v in rule.sets]
        for rule in made.rules
    }


def test_rules_are_read_with_their_places() -> None:
    made = one("""
CREATE RULES directions ON calls c
  LEFT JOIN routes r ON c.route = r.route -- the lookup
  FIRST MATCH
  RULE outgoing WHEN c.type IN (1, 3) THEN SET direction = 'O'
  RULE roaming
    WHEN r.kind = 'incoming'
    THEN SET direction = 'R', zone = upper(r.zone)
  ELSE SET direction = '?';
""")
    assert (made.name, made.kind, made.origin) == ("directions", "stream", Origin("calls.sql", 2))
    query = "SELECT * FROM calls c LEFT JOIN routes r ON c.route = r.route"
    assert " ".join(made.query.split()) == query
    assert made.rules is not None
    outgoing, roaming = made.rules.rules
    assert (outgoing.origin, outgoing.tests[0].origin.line) == (Origin("calls.sql", 5), 5)
    assert (roaming.tests[0].origin.line, roaming.sets[1][1].origin.line) == (7, 8)
    assert roaming.tests[0].where == "rule 'roaming'"
    assert made.rules.otherwise is not None
    assert (made.rules.names, made.rules.fields) == (
        ["outgoing", "roaming", "else"],
        ["direction", "zone"],
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("RULE a WHEN x THEN SET f = 1", (False, "rule")),
        ("FIRST MATCH RULE a WHEN x THEN SET f = 1", (False, "rule")),
        ("first match as why rule a when x then set f = 1", (False, "why")),
        ("ALL MATCHES RULE a WHEN x THEN SET f = 1", (True, "rules")),
        ("ALL MATCHES AS why RULE a WHEN x THEN SET f = 1", (True, "why")),
    ],
)
def test_the_way_of_matching_is_read(text: str, expected: tuple[bool, str]) -> None:
    made = rules(text)
    assert (made.all_matches, made.column) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "RULE a WHEN CASE x WHEN 1 THEN y ELSE z END THEN SET f = CASE WHEN y THEN 1 END",
            ["CASE x WHEN 1 THEN y ELSE z END", "f=CASE WHEN y THEN 1 END"],
        ),
        ("RULE a WHEN x = 'then' THEN SET f = ', ELSE'", ["x = 'then'", "f=', ELSE'"]),
        ("RULE a WHEN f(x, y) THEN SET f = g(1, 2), h = 3", ["f(x, y)", "f=g(1, 2)", "h=3"]),
        ("RULE a WHEN c.rule = 'b' THEN SET f = c.else", ["c.rule = 'b'", "f=c.else"]),
        ("RULE a WHEN rule IS NULL AND w.end > 3 THEN SET f = rule", None),
        ("RULE left WHEN x THEN SET f = 1", None),
    ],
)
def test_a_piece_ends_where_it_does(text: str, expected: list[str] | None) -> None:
    (found,) = said(rules(text)).values()
    assert expected is None or found == expected


def test_a_rule_without_a_condition_is_told_at_its_own_place() -> None:
    with pytest.raises(BadDefinition, match="expected WHEN, got 'THEN'") as caught:
        rules("RULE a WHEN x THEN SET f = 1\nRULE b THEN SET f = 2")
    assert caught.value.origin == Origin("calls.sql", 2)


def test_a_decision_table_is_read_from_the_project(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "d.csv").write_text("rule,type,SET f\na,1,x\nelse,,y\n")
    made = one("CREATE RULES d ON calls ALL MATCHES FROM 'rules/d.csv'", tmp_path).rules
    assert made is not None
    assert (made.names, made.all_matches) == (["a", "else"], True)
    with pytest.raises(BadDefinition, match="expected the end of the statement, got 'RULE'"):
        one("CREATE RULES d ON calls FROM 'rules/d.csv' RULE a WHEN x THEN SET f = 1", tmp_path)
