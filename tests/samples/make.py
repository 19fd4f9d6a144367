"""Makes the sample of the present formats: `python tests/samples/make.py`, which takes a minute.

A sample is the state of a small project that has run, and of a server, as this Headrace writes
them. Its name has the versions of the log, the master, the store, the file of users and the
database of the server. It is kept as it is, and never made again: the Headrace that wrote it is
gone by the time it is needed. tests/run/test_formats.py opens all samples and knows their answers.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec.json import encode

from headrace.access.access import Access
from headrace.access.audit_log import Actor
from headrace.access.file import USERS
from headrace.access.token import TokenRequest
from headrace.api.resources.catalog import CatalogRequest
from headrace.api.resources.rows import ViewRequest
from headrace.define.project import load_project
from headrace.log.embedded.description import LOG
from headrace.master.version import MASTER
from headrace.run.job import Names
from headrace.run.offline import Offline
from headrace.server.database import DOMAIN, DomainDatabase
from headrace.server.records import RUNNING, Job, add_version, write_job
from headrace.server.resources import JobResources
from headrace.serving.store_tables import STORE

HERE = Path(__file__).parent
FORMATS = (LOG, MASTER, STORE.versions, USERS.versions, DOMAIN.versions)
NOW_US = 1_763_424_000_000_000  # 2025-11-18
SETTINGS = 'name = "shop"\n[log]\nfree_bytes_min = 0\n[spark]\nmaster = "local[1]"\n'
DEFINITIONS = """
CREATE STREAM clicks (
  user STRING NOT NULL, url STRING NOT NULL, ts TIMESTAMP NOT NULL, ms BIGINT, price DECIMAL(8, 2),
  WATERMARK ts DELAY OF INTERVAL 10 MINUTES
) WITH (source = 'http', key = 'user', id = 'event_id', partitions = 2);

CREATE VIEW pages AS
SELECT url, count(*) AS hits, count(DISTINCT user) AS users, max(ms) AS slowest, sum(price) AS paid
FROM clicks GROUP BY url;

CREATE TABLE sections (url STRING, section STRING) USING csv LOCATION 'sections.csv';

CREATE VIEW hours AS
SELECT window(ts, '1 hour', '30 minutes') AS hour, count(*) AS hits,
  approx_count_distinct(user) AS users FROM clicks GROUP BY window(ts, '1 hour', '30 minutes');

CREATE VIEW visits AS
SELECT user, session_window(ts, '5 minutes') AS visit, count(*) AS hits,
  collect_list(url, 3) AS urls FROM clicks GROUP BY user, session_window(ts, '5 minutes');

CREATE VIEW by_section AS
SELECT s.section, count(*) AS hits FROM clicks c JOIN sections s ON c.url = s.url
GROUP BY s.section;

CREATE VIEW pairs AS
SELECT user, count_window(2) AS pair, count(*) AS hits FROM clicks GROUP BY user, count_window(2);

CREATE STREAM returns AS
SELECT * FROM clicks MATCH_RECOGNIZE (PARTITION BY user ORDER BY ts
  MEASURES first.url AS began, again.url AS ended PATTERN (first again) WITHIN INTERVAL 10 MINUTES);

CREATE VIEW returned AS SELECT began, ended, count(*) AS n FROM returns GROUP BY began, ended;

CREATE SINK paid FROM pages INTO FILE 'pages.ndjson';

CREATE WATCH dear AS SELECT * FROM clicks WHERE price > 100 UNTIL '2100-01-01';

CREATE RULE slow AS SELECT user, url, ms FROM clicks WHERE ms > 400 SEVERITY 'high';
"""


def click(number: int, user: str, url: str, ms: int) -> dict[str, object]:
    time = f"2025-11-18T10:0{number}:00Z"
    return {"event_id": f"e{number}", "user": user, "url": url, "ts": time, "ms": ms, "price": 1.25}


ARCHIVED = [
    click(1, "ann", "/home", 30),
    click(2, "bob", "/home", 70),
    click(3, "ann", "/cart", 500),
    click(2, "bob", "/home", 70),  # a duplicate
    {"event_id": "e4", "user": "bob"},  # a dead letter
]
SENT_LATER = [click(5, "cleo", "/home", 90)]  # in the log alone


def make_project(folder: Path) -> None:
    folder.mkdir()
    (folder / "headrace.toml").write_text(SETTINGS)
    (folder / "shop.sql").write_text(DEFINITIONS)
    (folder / "sections.csv").write_text("url,section\n/home,front\n/cart,shop\n")
    send(folder, ARCHIVED)
    headrace(folder, "run", "--until-idle", "--port", "0")
    send(folder, SENT_LATER)
    state = folder / ".headrace"
    (state / "access.db").unlink()  # has the tokens of the run
    make_users(state / "access.db")
    for scratch in ("work", "headrace.log", "run.json", "run.token", "lock"):
        path = state / scratch
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def answers_of(folder: Path) -> dict[str, Any]:
    """The answers of all views of the project, which its later readers must give too."""
    offline = Offline(load_project(folder))
    try:
        views = [view.name for view in offline.ask(CatalogRequest()).views]
        return {view: json.loads(encode(offline.ask(ViewRequest(view)).rows)) for view in views}
    finally:
        offline.close()


def send(folder: Path, events: list[dict[str, object]]) -> None:
    file = folder.with_name("events.ndjson")
    file.write_text("".join(json.dumps(event) + "\n" for event in events))
    headrace(folder, "send", "clicks", str(file))


def headrace(folder: Path, *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "headrace", *arguments], cwd=folder, check=True)


def make_users(path: Path) -> None:
    access, by = Access(path, "shop", clock=lambda: NOW_US), Actor("local")
    access.add_user("ada", "viewer", by)
    access.create_token(TokenRequest(user="ada", name="laptop", life="30d"), by)
    access.close()


def make_server(folder: Path) -> None:
    folder.mkdir()
    database = DomainDatabase(folder / "domain.db")
    with database.write() as db:
        add_version(db, "shop", 1, "d1", Names(["clicks"], ["pages"], ["slow"]), "ada", NOW_US)
        write_job(db, Job("shop", "ada", RUNNING, 1, 0, JobResources(2, "1g"), "", ""), NOW_US)


def _anybody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def make() -> None:
    with TemporaryDirectory() as made:
        make_project(Path(made) / "project")
        make_server(Path(made) / "server")
        answers = json.dumps(answers_of(Path(made) / "project"), indent=1)
        (Path(made) / "answers.json").write_text(answers)
        target = HERE / f"state-{'-'.join(str(format.newest) for format in FORMATS)}.tar.xz"
        with tarfile.open(target, "x:xz") as archive:
            for name in ("project", "server", "answers.json"):
                archive.add(Path(made) / name, name, filter=_anybody)
    print(f"{target}: {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    make()
