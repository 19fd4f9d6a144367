"""`headrace sigma`: SQL on stdout, sentences on stderr, and no file lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from headrace.define.statements import read_statements

from .conftest import document

GOOD = "title: Root\nlevel: high\ndetection: {s: {user: root}, condition: s}\n"
BAD = "---\ntitle: Wide\ndetection: {s: {user|wide: root}, condition: s}\n"
SENTENCE = (
    "Unsupported: Sigma rule 'Wide' is not translated: the modifier 'wide' is not supported\n"
    "  at root.yml:5\n"
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "root.yml").write_text(GOOD)
    return tmp_path


def test_sql_is_printed_and_can_be_read(call: Callable[..., Result]) -> None:
    result = call("sigma", "root.yml", "--stream", "sign_ins", "--time", "at")
    assert result.exit_code == 0
    assert "--   at TIMESTAMP" in result.stdout
    [rule] = read_statements(result.stdout, "rules.sql")
    assert rule.name == "root"


def test_what_is_not_translated_is_told_on_stderr_and_the_rest_is_made(
    here: Path, call: Callable[..., Result]
) -> None:
    (here / "root.yml").write_text(GOOD + BAD)
    result = call("sigma", "root.yml")
    assert result.exit_code == 1
    assert result.stderr == SENTENCE
    assert "CREATE RULE root AS" in result.stdout
    said = document(call("sigma", "root.yml", "--json"))
    assert said["ok"] is False
    assert (said["rules"], said["columns"]) == (["root"], {"user": "STRING"})
    assert said["errors"][0]["origin"] == "root.yml:5"


def test_a_file_is_written_again_only_if_it_was_made_by_this_command(
    here: Path, call: Callable[..., Result]
) -> None:
    for _ in range(2):
        result = call("sigma", "root.yml", "--output", "rules.sql")
        assert (result.exit_code, result.stdout) == (0, "rules.sql: 1 rule\n")
    assert read_statements((here / "rules.sql").read_text(), "rules.sql")
    (here / "rules.sql").write_text("CREATE STREAM mine (a INT);")
    result = call("sigma", "root.yml", "--output", "rules.sql", "--json")
    assert result.exit_code == 1
    assert document(result)["message"] == (
        "refusing to overwrite rules.sql: it was not created by this command"
    )


def test_wrong_names_and_files_are_refused(call: Callable[..., Result]) -> None:
    said = document(call("sigma", "root.yml", "--stream", "a b", "--json"))
    assert (
        said["message"] == "'a b' is not a valid name: use letters, digits and '_', a letter first"
    )
    said = document(call("sigma", "gone.yml", "--json"))
    assert said["message"].startswith("gone.yml cannot be read: ")


def test_keywords_need_a_column(here: Path, call: Callable[..., Result]) -> None:
    (here / "words.yml").write_text("title: W\ndetection: {k: [dump], condition: k}\n")
    assert call("sigma", "words.yml").exit_code == 1
    result = call("sigma", "words.yml", "--keywords", "message")
    assert "WHERE lower(message) LIKE '%dump%'" in result.stdout
