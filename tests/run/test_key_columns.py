"""Which columns of an answer are keys of its rows."""

from __future__ import annotations

import pytest

from headrace.run.key_columns import with_keys
from headrace.serving.answer import Answer, ColumnInfo


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("SELECT status, count(*) FROM clicks GROUP BY status", [True, False]),
        ("SELECT count(*), c.Status FROM clicks c GROUP BY status;", [False, True]),
        ("SELECT hour(ts), day(ts) AS d, sum(n) FROM t GROUP BY hour(ts), d", [True, True, False]),
        ("SELECT sum(ms), status FROM clicks GROUP BY 2", [False, True]),
        ("WITH a AS (SELECT 1) SELECT b, max_by(c, d) FROM a GROUP BY ALL", [True, False]),
        ("SELECT a, b, count(*) FROM t GROUP BY a, ROLLUP(b)", [True, True, False]),
        ("SELECT a, count(*) FROM t GROUP BY a WITH CUBE", [True, False]),
        ("SELECT count(*) AS status, 1 AS one FROM clicks GROUP BY status", [False, False]),
        ("SELECT status, ms FROM clicks", [False, False]),
        ("SELECT *, count(*) FROM clicks GROUP BY status", [False, False]),
        ("SELECT n, n, count(*) FROM t GROUP BY n", [False, False]),
        ("SELEC", [False]),
        ("DROP TABLE t", [False]),
    ],
)
def test_the_columns_that_are_grouped_by_are_keys(text: str, keys: list[bool]) -> None:
    columns = {f"c{n}": ColumnInfo("BIGINT", True) for n, _ in enumerate(keys)}
    answer = with_keys(text, Answer([], {}, columns))
    assert [info.key for info in answer.columns.values()] == keys


def test_a_key_of_a_view_stays_one() -> None:
    known = Answer([], {}, {"a": ColumnInfo("BIGINT", True, key=True)})
    assert with_keys("SELECT a FROM hits", known) == known
