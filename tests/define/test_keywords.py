"""A keyword of ours in a literal, a quoted name or a comment is no keyword: what is read is the
same as with any other word there.

The keywords are all words in capitals that the readers of headrace/define compare with, and the
signs that end a clause or open one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace import define, destination
from headrace.core.errors import HeadraceError
from headrace.define.definitions import RuleDefinition, WatchDefinition
from headrace.define.embedded import embedded_queries
from headrace.define.statements import read_statements
from headrace.define.stream_subscription import read_stream_subscription
from headrace.define.view_subscription import read_subscription

OTHER = "zZqX"
SIGNS = ("(", ")", ",", "-", "*", "=", "|", "{", "}", "$", ">", "<", ">=", "( )", ";", "--", "/*")
_WORDS = re.compile(r"[A-Z]{2,}(_[A-Z]+)*( [A-Z]+)*")
# Each {t} is the whole of a text in quotes, {n} of a quoted name, {c} of a comment.
STATEMENTS = (
    """/* {c} */ CREATE /* {c} */ RULE r AS /* {c} */ SELECT '{t}' AS a, `{n}` FROM s -- {c}
    WHERE v = '{t}' AND w IN ('{t}', "{t}") AND `{n}` > 1 AND CASE WHEN v = '{t}' THEN 1 END = 2
    AND x = '{t}' /* {c} */ SEVERITY 'high' /* {c} */ SUPPRESS FOR INTERVAL 1 MINUTE PER `{n}`, b
    NOTIFY FILE '{t}', CALL f COUPLING EPOCH /* {c} */ WITH CORRECTIONS""",
    "CREATE RULE r AS SELECT * FROM s WHERE '{t}' = v",
    "CREATE RULE r AS SELECT `{n}`, s.severity FROM s GROUP BY severity HAVING notify > 1",
    """CREATE RULE r AS count(DISTINCT coalesce(a, '{t}', `{n}`)) >= 3 WITHIN INTERVAL 1 MINUTE
    PER `{n}` FROM s WHERE v = '{t}' NOTIFY CALL f""",
    """CREATE RULE r AS SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY `{n}` ORDER BY ts -- {c}
    MEASURES concat(a.x, '{t}') AS m, a.`{n}` AS k, '{t}' AS l ONE ROW PER MATCH
    AFTER MATCH SKIP PAST LAST ROW PATTERN (a b+ /* {c} */) WITHIN INTERVAL 1 HOUR
    DEFINE a AS a.x = '{t}', b AS b.y IN ('{t}') AND `{n}` = 1) WHERE m = '{t}' NOTIFY CALL f""",
    """CREATE WATCH w AS SELECT * FROM s /* {c} */ WHERE v = '{t}' AND `{n}` < 1 AND u = '{t}'
    UNTIL '2030-01-01' /* {c} */ AFTER 3 MATCHES WHEN (v = '{t}' OR `{n}` IN ('{t}')) -- {c}
    SEVERITY 'low' NOTIFY STREAM t""",
    "CREATE WATCH w AS SELECT * FROM s WHERE '{t}' = v AFTER 1 MATCH",
    """CREATE STREAM s (`{n}` STRING NOT NULL COMMENT '{t}', b INT COMMENT '{t}', -- {c}
    ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 1 MINUTE /* {c} */)
    WITH (source = 'generator', x = '{t}', 'watermark.idle' = '1 minute', y = "{t}")""",
    "CREATE TABLE t (`{n}` INT COMMENT '{t}') USING csv OPTIONS (sep = '{t}') LOCATION '{t}'",
    "CREATE VIEW v AS SELECT '{t}' AS a, `{n}`, count(*) AS n FROM s WHERE x = '{t}' -- {c}",
    "CREATE STREAM d AS SELECT '{t}' AS a, `{n}` FROM s WHERE x = '{t}'",
    """CREATE RULES r ON s /* {c} */ FIRST MATCH AS decision RULE one WHEN v = '{t}' AND `{n}` = 1
    THEN SET x = '{t}', y = concat(`{n}`, '{t}') /* {c} */ RULE two WHEN CASE WHEN v = '{t}'
    THEN true END THEN SET x = `{n}` ELSE SET x = '{t}'""",
    "CREATE SINK k FROM v WHERE `{n}` = '{t}' AND b = -1 INTO FILE '{t}' EMIT CHANGES",
    "CREATE SINK k FROM v WHERE `{n}` > '{t}' OR b IN ('{t}') INTO STREAM s EMIT ON TIME",
)
SUBSCRIPTIONS = (
    "SUBSCRIBE TO v WHERE `{n}` = '{t}' AND b = '{t}' /* {c} */ EMIT EARLY EVERY 10 EVENTS",
    "SUBSCRIBE TO v WHERE b = '{t}' OR `{n}` LIKE '{t}' EMIT INSERTS",
    "SUBSCRIBE TO v WHERE a = '{t}'",
)
FOLLOWED = (
    "SUBSCRIBE TO s FROM BEGINNING -- {c}\n WHERE `{n}` = '{t}' OR a IN ('{t}')",
    "SUBSCRIBE TO s WHERE a = '{t}'",
)


def keywords() -> list[str]:
    """All words in capitals of the readers, whether they stand in a call, a table or a set."""
    folders = [Path(str(room.__file__)).parent for room in (define, destination)]
    found: set[str] = set()
    for path in (path for folder in folders for path in folder.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found |= set(node.value.split()) if _WORDS.fullmatch(node.value) else set()
                found |= {node.value} if _WORDS.fullmatch(node.value) else set()
    return sorted(found)


def mixed(word: str) -> str:
    """The word in a case that stands nowhere else."""
    return "".join(c.lower() if n % 2 else c for n, c in enumerate(word))


def filled(template: str, hole: str, word: str) -> str:
    for kind in "tnc":
        template = template.replace(f"{{{kind}}}", word if kind == hole else OTHER)
    return template


def read(reader: Callable[[str], Any], text: str) -> str:
    return repr(reader(text))


def definitions(text: str) -> Any:
    """What a statement defines, and the SQL of a rule or watch piece by piece."""
    (said,) = read_statements(text, "x.sql")
    added = isinstance(said, RuleDefinition | WatchDefinition)
    return said, list(embedded_queries(said)) if added else []


READERS: tuple[tuple[Callable[[str], Any], tuple[str, ...]], ...] = (
    (definitions, STATEMENTS),
    (read_subscription, SUBSCRIPTIONS),
    (read_stream_subscription, FOLLOWED),
)


def cases() -> Iterator[Any]:
    for reader, templates in READERS:
        for template in templates:
            for hole in "tnc":
                if f"{{{hole}}}" in template:
                    yield pytest.param(reader, template, hole, id=f"{template.split()[1]}-{hole}")


def fits(word: str, hole: str) -> bool:
    """Names of ours are letters; a comment cannot hold its own end or beginning."""
    return {"t": True, "n": word.isidentifier(), "c": word != "/*"}[hole]


def _as_usual(found: str, word: str) -> str:
    """What was read with the other word in place of this one; a sign stands elsewhere too, so of
    signs only those that are a whole text are replaced.
    """
    if word not in SIGNS:
        return re.sub(rf"\b{re.escape(word)}\b", OTHER, found)
    for before, after in (("'", "'"), ('"', '"'), ("\\'", "\\'"), ("/* ", " */"), ("-- ", "\\n")):
        found = found.replace(f"{before}{word}{after}", f"{before}{OTHER}{after}")
    return found


def test_the_keywords_are_found() -> None:
    assert {"NOTIFY", "SUPPRESS", "SEVERITY", "UNTIL", "MATCH_RECOGNIZE", "DEFINE", "ORDER BY",
            "PER", "EMIT", "WHEN", "THEN", "INTO", "WATERMARK", "FILE", "CALL",
    } <= set(keywords())  # fmt: skip


@pytest.mark.parametrize(("reader", "template", "hole"), list(cases()))
def test_a_keyword_in_quotes_or_comments_is_read_as_any_other_word(
    reader: Callable[[str], Any], template: str, hole: str
) -> None:
    usual = read(reader, filled(template, hole, OTHER))
    wrong: dict[str, str] = {}
    for word in (*map(mixed, keywords()), *SIGNS):
        if not fits(word, hole):
            continue
        try:
            found = read(reader, filled(template, hole, word))
        except HeadraceError as error:
            wrong[word] = error.message
            continue
        if _as_usual(found, word) != usual:
            wrong[word] = found
    assert wrong == {}
