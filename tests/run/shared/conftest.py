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
seconds_max = 60.0
memory = "512m"
"""
DEFINITIONS = """
CREATE STREAM clicks (user STRING, url STRING, ms BIGINT, ts TIMESTAMP NOT NULL,
  WATERMARK ts DELAY OF INTERVAL 1 MINUTE);
CREATE STREAM sections (url STRING, section STRING);
CREATE VIEW users AS SELECT user, count(*) AS n FROM clicks GROUP BY user;
CREATE WATCH of_files AS SELECT * FROM clicks
  WHERE xpath_string(url, '/a') = 'a' UNTIL '2100-01-01';
CREATE STREAM visits (n BIGINT NOT NULL, page STRING NOT NULL, ts TIMESTAMP NOT NULL,
  WATERMARK ts DELAY OF INTERVAL 1 MINUTE) WITH (key = 'page', id = 'event_id');
CREATE STREAM numbered AS SELECT page, n,
  row_number() OVER (PARTITION BY page ORDER BY ts) AS place FROM visits;
CREATE VIEW places AS SELECT place, max(n) AS n FROM numbered GROUP BY place;
"""


@pytest.fixture(scope="package")
def shared_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its address."""
    running = Running(make_project(tmp_path_factory.mktemp("shared"), SETTINGS, DEFINITIONS))
    try:
        url = str(running.wait_for("serving")["url"])
        running.wait_for("ready")
        yield url
        running.stop()
    finally:
        running.kill()
