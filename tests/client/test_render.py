"""What a notebook and a terminal show of an answer."""

from __future__ import annotations

import msgspec

from headrace.client.render import as_html, as_text
from headrace.serving.answer import ColumnInfo

from .conftest import ANSWER


def test_text_says_rows_freshness_and_exactness() -> None:
    lines = as_text(ANSWER).splitlines()
    assert lines[0].split() == ["url", "hour", "hits", "users"]
    assert lines[1].split()[-1] == "~8"
    assert lines[-2].startswith("clicks: generation 3 · position 6,5")
    assert lines[-1] == "2 rows; estimated: users (± 1.6%); every other column exact"


def test_every_kind_of_number_is_on_the_right() -> None:
    columns = {"shop": ColumnInfo("STRING", True)}
    columns |= {kind: ColumnInfo(kind, True) for kind in ("DECIMAL(14,3)", "smallint", "FLOAT")}
    row = {"shop": "north", "DECIMAL(14,3)": "9.900", "smallint": 7, "FLOAT": 0.5}
    answer = msgspec.structs.replace(ANSWER, rows=[row], columns=columns)
    head, line, *_ = as_text(answer).splitlines()
    assert head == "shop   DECIMAL(14,3)  smallint  FLOAT"
    assert line == "north          9.900         7    0.5"


def test_html_escapes_what_came_from_events() -> None:
    page = as_html(ANSWER)
    assert "&lt;b&gt;/home&lt;/b&gt;" in page
    assert "<b>" not in page
    assert "<td>~8</td>" in page
    assert "clicks: generation 3" in page


def test_html_of_many_rows_counts_the_rest() -> None:
    many = msgspec.structs.replace(ANSWER, rows=ANSWER.rows * 30, truncated=True)
    page = as_html(many)
    assert page.count("<tr>") == 51
    assert "10 rows not shown<br>there are more rows than these" in page
