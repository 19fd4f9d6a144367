"""What is computed: four views over the same stream of clicks, alone, together, and ten at once.

A view is one SELECT, which Headrace and PySpark run as it is. PySpark's streaming programs keep
partial rows of their micro-batches and merge them at the end: `partial` and `merge` are what a
programmer would write for that. The others are spelled in the words of DuckDB and Flink.
"""

from __future__ import annotations

from dataclasses import dataclass

STREAM = """
CREATE STREAM clicks (
  user STRING NOT NULL, ad STRING NOT NULL, kind STRING NOT NULL, ts TIMESTAMP NOT NULL, ms BIGINT,
  WATERMARK ts DELAY OF INTERVAL 10 MINUTES
);
CREATE TABLE ads (ad STRING, campaign STRING) USING csv LOCATION 'ads.csv';
"""
SCHEMA = "user STRING, ad STRING, kind STRING, ts TIMESTAMP, ms BIGINT"


@dataclass(frozen=True, slots=True)
class View:
    """One view; its window, if it has one, is the column `w`, and `users` may be an estimate."""

    name: str
    columns: dict[str, str]  # of an answer -> how a side that has a window as a struct reads it
    select: str
    partial: str
    merge: str
    duck: str
    flink: str
    estimated: bool = False

    @property
    def exact(self) -> str:
        """What DuckDB says without estimating."""
        return self.duck.replace("approx_count_distinct(", "count(DISTINCT ")

    @property
    def flat(self) -> str:
        """The SELECT with the start of its window in microseconds, as every answer has it."""
        columns = ", ".join(f"{how} AS {name}" for name, how in self.columns.items())
        return f"SELECT {columns} FROM ({self.select})"


_START = "unix_micros(w.start)"
_EPOCH = "TIMESTAMPDIFF(SECOND, TIMESTAMP '1970-01-01 00:00:00', {})"
_FLINK_START = f"CAST({_EPOCH.format('window_start')} AS BIGINT) * 1000000"


def _bucket(seconds: int) -> str:
    return f"epoch_us(time_bucket(INTERVAL {seconds} SECOND, ts))"


CAMPAIGNS = View(
    "campaigns",
    {"campaign": "campaign", "w": _START, "n": "n"},
    select="""SELECT a.campaign, window(ts, '10 seconds') AS w, count(*) AS n
      FROM clicks c JOIN ads a ON c.ad = a.ad WHERE kind = 'view'
      GROUP BY a.campaign, window(ts, '10 seconds')""",
    partial="""SELECT a.campaign, unix_micros(window(ts, '10 seconds').start) AS w, count(*) AS n
      FROM clicks c JOIN ads a ON c.ad = a.ad WHERE kind = 'view' GROUP BY 1, 2""",
    merge="SELECT campaign, w, sum(n) AS n FROM partials GROUP BY campaign, w",
    duck=f"""SELECT campaign, {_bucket(10)} AS w, count(*) AS n
      FROM clicks c JOIN ads a ON c.ad = a.ad WHERE kind = 'view' GROUP BY ALL""",
    # A window of Flink's needs a time attribute, which a join with a table of files takes away.
    flink="""SELECT campaign, w, COUNT(*) AS n FROM (
        SELECT a.campaign, CAST({} / 10 * 10 AS BIGINT) * 1000000 AS w
        FROM clicks c JOIN ads a ON c.ad = a.ad WHERE kind = 'view')
      GROUP BY campaign, w""".format(_EPOCH.format("CAST(c.ts AS TIMESTAMP(3))")),
)


def _hours(name: str, users: str, partial: str, merged: str, duck: str, estimated: bool) -> View:
    return View(
        name,
        {"ad": "ad", "w": _START, "n": "n", "ms": "ms", "users": "users"},
        select=f"""SELECT ad, window(ts, '1 hour') AS w, count(*) AS n, sum(ms) AS ms,
          {users} AS users FROM clicks GROUP BY ad, window(ts, '1 hour')""",
        partial=f"""SELECT ad, unix_micros(window(ts, '1 hour').start) AS w, count(*) AS n,
          sum(ms) AS ms, {partial} AS users FROM clicks GROUP BY 1, 2""",
        merge=f"""SELECT ad, w, sum(n) AS n, sum(ms) AS ms, {merged} AS users FROM partials
          GROUP BY ad, w""",
        duck=f"""SELECT ad, {_bucket(3600)} AS w, count(*) AS n, sum(ms)::BIGINT AS ms,
          {duck} AS users FROM clicks GROUP BY ALL""",
        flink=f"""SELECT ad, {_FLINK_START} AS w, COUNT(*) AS n, SUM(ms) AS ms,
          COUNT(DISTINCT `user`) AS users
          FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' HOUR))
          GROUP BY ad, window_start, window_end""",
        estimated=estimated,
    )


HOURS = _hours(
    "hours",
    "approx_count_distinct(user)",
    "hll_sketch_agg(user)",
    "hll_sketch_estimate(hll_union_agg(users))",
    'approx_count_distinct("user")',
    estimated=True,
)
HOURS_EXACT = _hours(
    "hours_exact",
    "count(DISTINCT user)",
    "collect_set(user)",
    "size(array_distinct(flatten(collect_list(users))))",
    'count(DISTINCT "user")',
    estimated=False,
)
USERS = View(
    "users",
    {"user": "user", "n": "n"},
    select="SELECT user, count(*) AS n FROM clicks GROUP BY user",
    partial="SELECT user, count(*) AS n FROM clicks GROUP BY user",
    merge="SELECT user, sum(n) AS n FROM partials GROUP BY user",
    duck='SELECT "user", count(*) AS n FROM clicks GROUP BY "user"',
    flink="SELECT `user`, COUNT(*) AS n FROM clicks GROUP BY `user`",
)
WORKLOADS: dict[str, tuple[View, ...]] = {
    "W1 filter, join, 10 s": (CAMPAIGNS,),
    "W2 distinct, estimated": (HOURS,),
    "W2 distinct, exact": (HOURS_EXACT,),
    "W3 200,000 keys": (USERS,),
    "W1 + W2 + W3": (CAMPAIGNS, HOURS, USERS),
}


def definitions(views: tuple[View, ...]) -> str:
    """The project of these views."""
    return STREAM + "".join(f"CREATE VIEW {view.name} AS {view.select};\n" for view in views)


def ten_views(count: int) -> str:
    """Up to ten views of other windows and aggregates over the same stream."""
    minutes = (1, 2, 5, 10, 15, 20, 30, 60, 120, 240)
    return STREAM + "".join(
        f"CREATE VIEW by_{m} AS SELECT ad, window(ts, '{m} minutes') AS w, count(*) AS n, "
        f"sum(ms) AS ms, max(ms) AS slowest FROM clicks GROUP BY ad, window(ts, '{m} minutes');\n"
        for m in minutes[-count:]
    )
