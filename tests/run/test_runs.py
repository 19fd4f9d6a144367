"""Whole runs of `headrace run`: live with a generator, until idle, and after a definition has
changed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.api.resources.rows import ViewRequest
from headrace.define.project import load_project
from headrace.run.offline import Offline
from tests.run import asking
from tests.run.modes import readable_by_others
from tests.run.process import Producer, Running, make_project, wait_fresh

pytestmark = pytest.mark.process

GENERATED = """
CREATE STREAM clicks (user STRING NOT NULL, url STRING NOT NULL, ts TIMESTAMP NOT NULL, ms BIGINT,
  WATERMARK ts DELAY OF INTERVAL 10 MINUTES)
  WITH (source = 'generator', rate = '400', key = 'user', id = 'event_id', duplicates = '0.05',
        malformed = '0.02', out_of_order = '0.1');
CREATE TABLE sections (url STRING, section STRING) USING json LOCATION 'sections.json';
CREATE VIEW pages AS SELECT s.section, window(c.ts, '1 minute') AS minute, count(*) AS hits,
  count(DISTINCT c.user) AS users, stddev(c.ms) AS deviation, max_by(c.user, c.ts) AS last
  FROM clicks c LEFT JOIN sections s ON c.url = s.url GROUP BY s.section, window(c.ts, '1 minute');
CREATE VIEW busiest AS SELECT section, sum(hits) AS hits FROM pages
  GROUP BY section ORDER BY hits DESC;
"""
CHANGED = """
CREATE STREAM clicks (n BIGINT NOT NULL, page STRING NOT NULL, ts TIMESTAMP NOT NULL,
  WATERMARK ts DELAY OF INTERVAL 1 MINUTE) WITH (key = 'page', id = 'event_id');
CREATE VIEW pages AS SELECT page, count(*) AS hits, sum(n) AS total FROM clicks
  WHERE n % 2 = 0 GROUP BY page;
CREATE VIEW total AS SELECT count(*) AS hits, min(n) AS first, max(n) AS last FROM clicks;
"""


@pytest.mark.timeout(300)
def test_a_live_run_with_bad_events_ends_with_an_exact_balance_and_no_difference(
    tmp_path: Path,
) -> None:
    settings = 'name = "live"\n[speed]\ngroup = "2 s"\n[batch]\ninterval = "6 s"\n'
    project = make_project(tmp_path / "live", settings, GENERATED)
    rows = "\n".join(f'{{"url": "url-{n}", "section": "s{n % 3}"}}' for n in range(40))
    (project / "sections.json").write_text(rows)
    running = Running(project, "--for", "10s")
    summary = running.finish()
    balance = summary["balance"]["clicks"]
    assert summary["ok"]
    assert summary["differences"] == 0
    assert summary["rows_compared"] > 0
    # The start is slow and does not count.
    (ready,) = [report for report in running.reports if report["kind"] == "ready"]
    assert summary["start_seconds"] == ready["seconds"]
    assert 10 <= summary["run_seconds"] < 15
    assert summary["accepted"] == balance["accepted"]
    assert 0 < summary["events_built"] <= balance["accepted"]
    assert summary["epochs"] > 0
    assert summary["generations"] >= 2
    assert balance["off"] == 0
    assert balance["accepted"] > 2_000
    assert balance["duplicates"] > 0
    assert readable_by_others(project / ".headrace") == []


@pytest.mark.timeout(300)
def test_a_changed_view_is_built_beside_the_old_one_and_swapped(tmp_path: Path) -> None:
    project = make_project(tmp_path / "changed")
    producer = Producer()
    events = producer._make(2_000)
    service = Offline(load_project(project))
    import json

    service.submit("clicks", [json.dumps(event).encode() for event in events]).result()
    service.close()
    Running(project, "--until-idle").finish()
    before = Offline(load_project(project))
    assert sum(row["hits"] for row in before.ask(ViewRequest("pages")).rows) == 2_000
    assert before.ask(ViewRequest("pages")).columns["numbers"].exact
    before.close()

    make_project(project, definitions=CHANGED)
    running = Running(project)
    try:
        url = running.wait_for("serving")["url"]
        running.wait_for("ready")
        wait_fresh(url, 2_000)
        rows = asking.get(f"{url}/v1/views/pages").json()["rows"]
        assert sum(row["hits"] for row in rows) == 1_000
        rebuilt = asking.post(f"{url}/v1/views/total/rebuild", timeout=120).json()
        assert rebuilt["differences"] == 0
        producer.pending = events[:20]
        producer.flush(url)
        running.stop()
    finally:
        running.kill()
    after = Offline(load_project(project))
    status = after.status().streams[0]
    assert status.balance.duplicates + status.balance.in_log >= 20
    assert after.ask(ViewRequest("total")).rows[0]["first"] == 0
    after.close()
