"""What a window without a row would say is what SQL says of no rows."""

from __future__ import annotations

from pathlib import Path

from headrace.serving.answer import Windows
from headrace.serving.finish import windows_of

from .bench import WINDOWED, definitions, plan_of

COUNTED = (
    "SELECT page, window(ts, '1 minute') AS minute, count(*) AS n, count(*) + 1 AS more, "
    "max(ms) AS slowest, sum(ms) AS ms, count(DISTINCT user) AS users "
    "FROM clicks GROUP BY page, window(ts, '1 minute')"
)
VIEWS = {
    "counted": COUNTED,
    "often": f"{COUNTED} HAVING count(*) > 1",
    "few": f"{COUNTED} LIMIT 2",
    "pages": "SELECT page, count(*) AS n FROM clicks GROUP BY page",
    **WINDOWED,
}


def test_a_count_of_nothing_is_zero_and_all_else_is_null(tmp_path: Path) -> None:
    plan = plan_of(definitions(VIEWS))
    found = {view.name: windows_of(view) for view in plan.views}
    assert found == {
        "counted": Windows(60_000, {"n": 0, "more": 1, "users": 0}),
        "often": Windows(60_000, {}),
        "few": Windows(60_000, {}),
        "pages": None,
        "slid": Windows(4_000, {"n": 0}),
        "visits": None,
    }
