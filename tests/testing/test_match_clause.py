"""The text of MATCH_RECOGNIZE in parts."""

from __future__ import annotations

import pytest

from headrace.core.errors import BadDefinition
from headrace.core.time import SECOND
from headrace.testing.reference.match_clause import MatchClause, SkipClause, clause_of
from headrace.testing.reference.patterns import RowPattern

WHOLE = """
SELECT m.user -- ( is no parenthesis
FROM clicks MATCH_RECOGNIZE (
  PARTITION BY user, `page`
  ORDER BY ts
  MEASURES LAST(a.ms) AS ms, CAST(a.ms AS STRING) AS "text" /* ) */
  ALL ROWS PER MATCH OMIT EMPTY MATCHES
  AFTER MATCH SKIP TO FIRST a
  PATTERN (a) WITHIN INTERVAL 10 SECONDS SKIP TILL NEXT
  SUBSET u = (a, b)
  DEFINE a AS a.url = 'PATTERN (', b AS b.measures > 1
) AS m WHERE m.ms > 1
""".replace('"text"', "text")


def clause(body: str) -> MatchClause:
    found = clause_of(f"SELECT * FROM s MATCH_RECOGNIZE ({body})")
    assert found is not None
    return found


def test_every_part_is_read() -> None:
    found = clause_of(WHOLE)
    assert found is not None
    assert (found.stream, found.keys, found.time) == ("clicks", ("user", "page"), "ts")
    assert found.measures == {"ms": "LAST(a.ms) ", "text": "CAST(a.ms AS STRING) "}
    assert (found.all_rows, found.omit_empty, found.unmatched) == (True, True, False)
    assert (found.skip, found.pattern) == (SkipClause("FIRST", "A"), RowPattern("A"))
    assert (found.within_us, found.till) == (10 * SECOND, "NEXT")
    assert found.subsets == {"U": ("A", "B")}
    assert found.defined == {"A": "a.url = 'PATTERN ('", "B": "b.measures > 1"}


def test_what_is_left_of_the_query_reads_the_matches_as_if_they_were_the_stream() -> None:
    found = clause_of(WHOLE)
    assert found is not None
    assert " ".join(found.query.split()).endswith("FROM clicks AS m WHERE m.ms > 1")


def test_a_query_without_it_has_no_clause() -> None:
    assert clause_of("SELECT 'MATCH_RECOGNIZE (' AS x FROM s -- MATCH_RECOGNIZE (") is None


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("", SkipClause("PAST")),
        ("AFTER MATCH SKIP PAST LAST ROW", SkipClause("PAST")),
        ("after match skip to next row", SkipClause("NEXT")),
        ("AFTER MATCH SKIP TO b", SkipClause("LAST", "B")),
        ("AFTER MATCH SKIP TO LAST b", SkipClause("LAST", "B")),
        ("AFTER MATCH SKIP TO FIRST b", SkipClause("FIRST", "B")),
    ],
)
def test_skip_says_where_the_search_goes_on(said: str, expected: SkipClause) -> None:
    assert clause(f"ORDER BY ts {said} PATTERN (a b)").skip == expected


def test_skip_till_any_goes_on_with_the_next_row() -> None:
    assert clause("ORDER BY ts PATTERN (a) SKIP TILL ANY").skip == SkipClause("NEXT")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("INTERVAL 10 SECONDS", 10),
        ("INTERVAL '10' SECONDS", 10),
        ("INTERVAL '1 minute 10 seconds'", 70),
        ("interval 1 hour", 3600),
    ],
)
def test_within_is_an_interval(text: str, seconds: int) -> None:
    assert clause(f"ORDER BY ts PATTERN (a) WITHIN {text}").within_us == seconds * SECOND


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            "x ORDER BY ts PATTERN (a)",
            "MATCH_RECOGNIZE must not begin with: x ORDER BY ts PATTERN (a)",
        ),
        ("ORDER BY ts PATTERN (a) PARTITION BY k", "PARTITION BY is in the wrong position in"),
        ("ORDER BY ts ORDER BY ts PATTERN (a)", "ORDER BY is in the wrong position in"),
        (
            "ORDER BY ts ONE ROW PER MATCH SHOW PATTERN (a)",
            "SHOW is not allowed with ONE ROW PER MATCH",
        ),
        (
            "ORDER BY ts ALL ROWS PER MATCH HIDE PATTERN (a)",
            "HIDE is not allowed with ALL ROWS PER MATCH",
        ),
        (
            "ORDER BY ts ONE ROW PER MATCH ALL ROWS PER MATCH PATTERN (a)",
            "ALL ROWS PER MATCH is not allowed with ONE ROW PER MATCH",
        ),
        (
            "ORDER BY ts AFTER MATCH SKIP TO THE END PATTERN (a)",
            "AFTER MATCH SKIP does not support: TO THE END",
        ),
        ("ORDER BY ts PATTERN (a) b", "expected a list in parentheses, got: (a) b"),
        ("ORDER BY ts PATTERN (a) WITHIN 10", "expected INTERVAL after WITHIN, got: 10"),
        (
            "ORDER BY ts MEASURES CAST(x AS INT) PATTERN (a)",
            "a measure has no name: CAST(x",
        ),
        ("ORDER BY ts PATTERN (a) SUBSET u = (a), u = (a)", "duplicate SUBSET U"),
        (
            "ORDER BY ts PATTERN (a) DEFINE a x > 1",
            "DEFINE requires a variable AS a condition, got",
        ),
    ],
)
def test_what_cannot_be_read_is_refused(body: str, sentence: str) -> None:
    with pytest.raises(BadDefinition) as refused:
        clause(body)
    assert refused.value.message.startswith(sentence)


def test_it_stands_after_a_stream() -> None:
    with pytest.raises(BadDefinition, match="MATCH_RECOGNIZE requires a stream before it"):
        clause_of("SELECT * FROM s MATCH_RECOGNIZE")
