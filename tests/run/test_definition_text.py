"""Text that is added over the network is bounded, and of one kind, before it is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.core.errors import BadDefinition, LimitReached
from headrace.define.definitions import RuleDefinition, WatchDefinition
from headrace.define.settings import QuerySettings
from headrace.run.definition_text import parse_added

RULE = "CREATE RULE r AS SELECT * FROM s WHERE "


def test_a_statement_that_names_a_file_is_refused_before_the_file_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret.csv").write_text("rule;password\n")
    monkeypatch.chdir(tmp_path)
    for text in (
        "CREATE RULES r ON s FROM 'secret.csv'",
        f"{RULE}true; CREATE RULES r ON s FROM 'secret.csv'",
    ):
        with pytest.raises(BadDefinition) as refused:
            parse_added(text, RuleDefinition, QuerySettings())
        assert refused.value.message == "only CREATE RULE statements are accepted here"
        assert "password" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (RULE + "(" * 3000 + "1" + ")" * 3000, "the query is nested more than 64 levels deep"),
        (RULE + "CASE WHEN 1=1 THEN " * 70, "the query is nested more than 64 levels deep"),
        (
            RULE + "'" + "x" * 10_001 + "'",
            "a string literal in the query is longer than 10,000 characters",
        ),
        (RULE + "x" * 20_000, "the query has 20,039 characters, and the limit is 20,000"),
        (
            "CREATE RULE r AS SELECT * FROM s MATCH_RECOGNIZE (ORDER BY ts PATTERN "
            + "(" * 3000 + "a" + ")" * 3000 + ")",
            "the query is nested more than 64 levels deep",
        ),
    ],
    ids=["parentheses", "case", "text", "length", "pattern"],
)  # fmt: skip
def test_an_oversized_definition_reaches_a_limit(text: str, message: str) -> None:
    with pytest.raises(LimitReached) as refused:
        parse_added(text, RuleDefinition, QuerySettings())
    assert refused.value.message == message


def test_the_limit_is_of_each_statement() -> None:
    text = "; ".join(f"CREATE WATCH w{n} AS SELECT * FROM s AFTER 1 MATCH" for n in range(1000))
    assert len(parse_added(text, WatchDefinition, QuerySettings())) == 1000
