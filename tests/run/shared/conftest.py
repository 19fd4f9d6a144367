"""One project that runs, for tests that need no project of their own. One worker has them all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.run.process import Running, make_project

# Nothing is archived, cut or built by itself while the tests run.
SETTINGS = """
name = "shared"
[speed]
group = "1 hour"
[archive]
interval = "1 hour"
[batch]
interval = "1 hour"
[query]
seconds_max = 30
memory = "512m"
"""
DEFINITIONS = """
CREATE STREAM clicks (page STRING NOT NULL, user STRING, url STRING, ms BIGINT, price DOUBLE,
  ts TIMESTAMP NOT NULL, WATERMARK ts DELAY OF INTERVAL 1 MINUTE)
  WITH (key = 'user', id = 'event_id');
CREATE STREAM notes (line STRING, day DATE, ok BOOLEAN);
CREATE STREAM laps (n BIGINT NOT NULL, page STRING NOT NULL, ts TIMESTAMP NOT NULL,
  WATERMARK ts DELAY OF INTERVAL 1 MINUTE) WITH (key = 'page', id = 'event_id');
CREATE TABLE sections (page STRING, section STRING) USING csv LOCATION 'sections.csv';
CREATE STREAM visits AS SELECT c.page, c.user, c.ms, c.ts, s.section
  FROM clicks c LEFT JOIN sections s ON c.page = s.page;
CREATE STREAM numbered AS SELECT page, n,
  row_number() OVER (PARTITION BY page ORDER BY ts) AS place FROM laps;
CREATE VIEW total AS SELECT count(*) AS hits, max(ts) AS newest, sum(price) AS paid FROM clicks;
CREATE VIEW users AS SELECT user, count(*) AS n FROM clicks GROUP BY user;
CREATE VIEW pages AS SELECT page, window(ts, '1 minute') AS minute, count(*) AS hits,
  count(DISTINCT user) AS users, avg(ms) AS ms FROM clicks GROUP BY page, window(ts, '1 minute');
CREATE VIEW visited AS SELECT section, user, count(*) AS hits FROM visits GROUP BY section, user;
CREATE VIEW sittings AS SELECT user, session_window(ts, '5 minutes') AS sitting, count(*) AS hits
  FROM clicks GROUP BY user, session_window(ts, '5 minutes');
CREATE VIEW days AS SELECT day, ok, count(*) AS n FROM notes GROUP BY day, ok;
CREATE VIEW speeds AS SELECT ms, price, count(*) AS n FROM clicks GROUP BY ms, price;
CREATE VIEW busiest AS SELECT page, sum(hits) AS hits FROM pages GROUP BY page
  ORDER BY hits DESC LIMIT 3;
CREATE VIEW places AS SELECT place, max(n) AS n FROM numbered GROUP BY place;
CREATE RULE slow AS SELECT user, page, ms FROM clicks WHERE ms > 900;
CREATE WATCH dear AS SELECT * FROM clicks WHERE price > 99.5 UNTIL '2100-01-01';
CREATE WATCH of_files AS SELECT * FROM clicks
  WHERE xpath_string(url, '/a') = 'a' UNTIL '2100-01-01';
"""
SECTIONS = "page,section\n/1,front\n/2,back\n"


@pytest.fixture(scope="package")
def shared_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its address."""
    folder = make_project(tmp_path_factory.mktemp("shared"), SETTINGS, DEFINITIONS)
    (folder / "sections.csv").write_text(SECTIONS)
    running = Running(folder)
    try:
        url = str(running.wait_for("serving")["url"])
        running.wait_for("ready")
        yield url
        running.stop()
    finally:
        running.kill()
