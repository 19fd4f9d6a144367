"""What a decision table says, and the sentence of each mistake with its row and column."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.core.errors import BadDefinition
from headrace.core.origin import Origin
from headrace.define.decision_table import read_table
from headrace.define.rules import CellTest, DecisionRule, SqlFragment

SAID = Origin("calls.sql", 4)


def read(folder: Path, text: str | bytes) -> tuple[tuple[DecisionRule, ...], DecisionRule | None]:
    (folder / "d.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_table(folder, "d.csv", "directions", SAID)


def test_a_line_is_a_rule_with_its_row(tmp_path: Path) -> None:
    (outgoing, free), otherwise = read(
        tmp_path,
        "# Directions, by type.\nrule,type,r.kind,SET direction,SET zone\n"
        "outgoing,1|3,,O,\n\n# More.\nfree,*,=seconds = 0,F,=r.zone\nelse,,,?,",
    )
    assert (outgoing.name, outgoing.origin, free.origin.line) == ("outgoing", Origin("d.csv", 3), 6)
    (test,) = outgoing.tests
    assert isinstance(test, CellTest)
    assert (test.subject.text, test.subject.origin) == ("type", Origin("d.csv", 2))
    assert test.where == "rule 'outgoing', row 3, column 'type'"
    assert [(name, sql.text) for name, sql in outgoing.sets] == [("direction", "'O'")]
    assert [type(test) for test in free.tests] == [SqlFragment]
    assert [(name, sql.text) for name, sql in free.sets] == [
        ("direction", "'F'"),
        ("zone", "r.zone"),
    ]
    assert otherwise is not None
    assert (otherwise.name, otherwise.tests, otherwise.origin.line) == ("else", (), 7)


@pytest.mark.parametrize("sign", [",", ";", "\t"])
def test_a_spreadsheet_may_separate_as_its_language_does(tmp_path: Path, sign: str) -> None:
    text = "\ufeffrule,type,SET f\r\na,1,x\r\n".replace(",", sign)
    (rule,), otherwise = read(tmp_path, text)
    assert (rule.name, rule.sets[0][1].text, otherwise) == ("a", "'x'", None)


def test_a_cell_of_two_lines_keeps_the_rows_right(tmp_path: Path) -> None:
    (first, second), _ = read(tmp_path, 'rule,SET f\na,"x\ny"\nb,z\n')
    assert (first.origin.line, second.origin.line) == (2, 4)


def test_columns_without_a_name_may_be_empty(tmp_path: Path) -> None:
    (rule,), _ = read(tmp_path, "rule,type,SET f,,\na,1,x,,\n")
    assert len(rule.tests) == 1


@pytest.mark.parametrize(
    ("text", "sentence", "row"),
    [
        ("", "d.csv is empty", 1),
        ("# nothing\n", "d.csv is empty", 1),
        ("name,SET f\n", "row 1: the first column must be 'rule', not 'name'", 1),
        ("rule,type\na,1\n", "row 1: at least one column must begin with SET", 1),
        (
            "rule,SET a b\n",
            "row 1: column 'SET a b': a field name may only have letters, digits and '_'",
            1,
        ),
        ("rule,SET f\n,x\n", "row 2: the rule has no name", 2),
        ("rule,SET f\na,x,y\n", "row 2: 'y' is in a column without a name", 2),
        ("rule,,SET f\na,7,x\n", "row 2: '7' is in a column without a name", 2),
        ("rule,SET f\nelse,x\na,y\n", "row 2: 'else' must be the last row", 2),
        ("rule,type,SET f\na,1,x\nELSE,2,y\n", "row 3: 'else' must not have conditions", 3),
        (
            "rule,type,SET f\na,1,x\nb,1|,y\n",
            "rule 'b', row 3, column 'type': a value is missing in '1|'",
            3,
        ),
        (b"rule,SET f\na,\xfc\n", "d.csv is not UTF-8 text", 1),
    ],
)
def test_a_mistake_is_told_with_its_row(
    tmp_path: Path, text: str | bytes, sentence: str, row: int
) -> None:
    with pytest.raises(BadDefinition) as caught:
        read(tmp_path, text)
    assert (caught.value.message, caught.value.origin) == (sentence, Origin("d.csv", row))


def test_a_file_that_is_not_there_is_told_where_it_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadDefinition) as caught:
        read_table(tmp_path, "rules/d.csv", "directions", SAID)
    assert str(caught.value) == (
        "BadDefinition: rules 'directions': 'rules/d.csv' cannot be read: "
        "No such file or directory\n"
        "  hint: the path after FROM is relative to the project's folder.\n  at calls.sql:4"
    )
