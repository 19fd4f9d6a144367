"""What is not deterministic is refused in every place of a definition, by what Spark knows
of it. In each place one expression is tried, which is drawn; in `make prove` all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chance import PROVE, drawn

from headrace.core.errors import Unsupported
from headrace.spark.analyse import SparkAnalyser
from headrace.spark.determinism import nondeterministic_part
from tests.plans.projects import compile_text

SALTED = "aes_encrypt() without an initialization vector"
UNCERTAIN = {
    "rand()": "rand()", "rand(7)": "rand()", "randn()": "randn()", "random()": "random()",
    "uuid()": "uuid()", "randstr(3)": "randstr()", "uniform(1, 5)": "uniform()",
    "shuffle(array(1, 2))[0]": "shuffle()", "monotonically_increasing_id()":
    "monotonically_increasing_id()", "spark_partition_id()": "spark_partition_id()",
    "input_file_name()": "input_file_name()",
    "now()": "now()", "current_timestamp": "current_timestamp()", "curdate()": "current_date()",
    "localtimestamp()": "localtimestamp()", "current_time()": "current_time()",
    "unix_timestamp()": "current_timestamp()", "current_user()": "current_user()",
    "user()": "user()", "session_user()": "session_user()", "current_timezone()":
    "current_timezone()", "current_database()": "current_schema()",
    "timestamp('now')": "a string such as 'now'", "date('today')": "a string such as 'now'",
    "to_timestamp('now')": "a string such as 'now'", "year('yesterday')": "a string such as 'now'",
    "datediff('tomorrow', ts)": "a string such as 'now'",
    "hex(AES_encrypt(user, '1234567890abcdef'))": SALTED,
    "hex(aes_encrypt(user, '1234567890abcdef', 'CBC', 'DEFAULT'))": SALTED,
    "hex(aes_encrypt(user, '1234567890abcdef', 'GCM', 'DEFAULT', unhex(user)))": SALTED,
    "(SELECT max(r) FROM (SELECT rand() AS r FROM clicks))": "rand()",
}  # fmt: skip
CERTAIN = (
    "ms", "upper(user)", "to_timestamp(user)", "year('2020-01-01')", "hash(user)",
    "TIMESTAMP 'epoch'", "'now'", "make_date(2020, 1, ms)", "sum(ms)", "collect_list(ms)",
    "first(user)", "any_value(user)",
    "aes_encrypt(user, '1234567890abcdef', 'ECB')",
    "aes_encrypt(user, '1234567890abcdef', 'CBC', 'DEFAULT', unhex(repeat('00', 16)))",
)  # fmt: skip
STREAM = """
CREATE STREAM clicks (user STRING, ms INT, ts TIMESTAMP,
  WATERMARK ts DELAY OF INTERVAL 1 MINUTE);
"""
# Every place of a definition that takes an expression.
PLACES = {
    "derived stream": "CREATE STREAM d AS SELECT user, {} AS x FROM clicks",
    "its condition": "CREATE STREAM d AS SELECT user FROM clicks WHERE {} IS NULL",
    "aggregate": "CREATE VIEW v AS SELECT count({}) AS n FROM clicks",
    "condition": "CREATE VIEW v AS SELECT count(*) AS n FROM clicks WHERE {} IS NULL",
    "filter": "CREATE VIEW v AS SELECT count(*) FILTER (WHERE {} IS NULL) AS n FROM clicks",
    "key": "CREATE VIEW v AS SELECT {0} AS k, count(*) AS n FROM clicks GROUP BY {0}",
    "after the aggregates": "CREATE VIEW v AS SELECT coalesce(max({0}), {0}) AS n FROM clicks",
    "having": "CREATE VIEW v AS SELECT user, count(*) AS n FROM clicks GROUP BY user "
    "HAVING {} IS NULL",
    "order": "CREATE VIEW v AS SELECT user, count(*) AS n FROM clicks GROUP BY user "
    "ORDER BY max({})",
    "running value": "CREATE STREAM d AS SELECT user, sum(hash({})) OVER (PARTITION BY user "
    "ORDER BY ts) AS x FROM clicks",
    "punctuation": "CREATE VIEW v AS SELECT punctuated_window({} IS NULL) AS w, count(*) AS n "
    "FROM clicks GROUP BY punctuated_window({} IS NULL)",
    "measure": "CREATE STREAM d AS SELECT * FROM clicks MATCH_RECOGNIZE (PARTITION BY user "
    "ORDER BY ts MEASURES {} AS x PATTERN (a b))",
    "pattern's condition": "CREATE STREAM d AS SELECT * FROM clicks MATCH_RECOGNIZE (PARTITION BY "
    "user ORDER BY ts MEASURES a.ms AS x PATTERN (a b) DEFINE b AS {} IS NULL)",
    "rule": "CREATE RULE r AS SELECT user FROM clicks WHERE {} IS NULL",
    "threshold": "CREATE RULE r AS count(*) >= 2 WITHIN INTERVAL 1 MINUTE PER user FROM clicks "
    "WHERE {} IS NULL",
    "what is counted": "CREATE RULE r AS count(DISTINCT hash({})) >= 2 WITHIN INTERVAL 1 MINUTE "
    "PER user FROM clicks",
    "end of a watch": "CREATE WATCH w AS SELECT user, ms FROM clicks AFTER 1 MATCH "
    "WHEN ({} IS NULL)",
    "watch": "CREATE WATCH w AS SELECT user FROM clicks WHERE {} IS NULL AFTER 1 MATCH",
    "view over a view": "CREATE VIEW u AS SELECT user, count(*) AS n FROM clicks GROUP BY user; "
    "CREATE VIEW v AS SELECT user, {} AS x FROM u",
}


@pytest.fixture(scope="module")
def clicks(spark: Any) -> Any:
    made = SparkAnalyser(spark)
    made.relation("clicks", "`user` STRING, `ms` INT, `ts` TIMESTAMP")
    return made.spark


@pytest.mark.parametrize("expression", UNCERTAIN)
def test_what_gives_another_value_each_time_is_named(clicks: Any, expression: str) -> None:
    sql = f"SELECT concat('a', {expression}) AS x FROM clicks"
    assert nondeterministic_part(clicks.sql(sql), sql) == UNCERTAIN[expression]


@pytest.mark.parametrize("expression", CERTAIN)
def test_what_speaks_of_the_events_is_certain(clicks: Any, expression: str) -> None:
    sql = f"SELECT {expression} AS x FROM clicks"
    assert nondeterministic_part(clicks.sql(sql), sql) is None


@pytest.mark.parametrize("place", PLACES)
def test_it_is_refused_in_every_place_of_a_definition(
    spark: Any, tmp_path: Path, place: str
) -> None:
    said = ("rand()", "current_user()", "to_timestamp('now')", "TIMESTAMP 'now'")
    for expression in said if PROVE else drawn("certain", place).sample(said, 1):
        text = PLACES[place].replace("{0}", expression).replace("{}", expression)
        with pytest.raises(Unsupported) as caught:
            compile_text(tmp_path, STREAM + text, SparkAnalyser(spark))
        assert caught.value.message.endswith(" is not deterministic")
