"""CREATE RULE: what is read, and the sentence for each mistake."""

from __future__ import annotations

import pytest

from headrace.core.errors import BadDefinition
from headrace.core.rule import Coupling, Severity
from headrace.core.time import MINUTE
from headrace.define.definitions import RuleDefinition
from headrace.define.statements import read_statements
from headrace.destination.call import CallDestination
from headrace.destination.email import EmailDestination
from headrace.destination.file import FileDestination
from headrace.destination.stream import StreamDestination
from headrace.destination.webhook import WebhookDestination

HEAD = "CREATE RULE r AS SELECT * FROM s WHERE n > 3"


def rule(text: str) -> RuleDefinition:
    (found,) = read_statements(text, "shop.sql")
    assert isinstance(found, RuleDefinition)
    return found


def test_every_clause_is_read() -> None:
    text = """CREATE RULE break_in AS
      SELECT * FROM break_ins WHERE attempts > 3
      SEVERITY 'critical'
      SUPPRESS FOR INTERVAL 10 MINUTES PER user, source_ip
      NOTIFY 'https://ops.example/hook', STREAM alerts_out, FILE 'alerts.ndjson',
        EMAIL 'ops@example.com', CALL page_me
      COUPLING EPOCH
      WITH CORRECTIONS"""
    found = rule(f"-- a comment\n{text};")
    assert found.text == text
    assert found.query == "SELECT * FROM break_ins WHERE attempts > 3"
    assert (str(found.origin), str(found.query_origin)) == ("shop.sql:2", "shop.sql:3")
    assert found.severity is Severity.CRITICAL
    assert (found.suppress_us, found.per) == (10 * MINUTE, ("user", "source_ip"))
    assert found.coupling is Coupling.EPOCH
    assert found.corrections
    assert found.destinations == (
        WebhookDestination("https://ops.example/hook"),
        StreamDestination("alerts_out"),
        FileDestination("alerts.ndjson"),
        EmailDestination("ops@example.com"),
        CallDestination("page_me"),
    )


def test_clauses_have_defaults() -> None:
    found = rule(HEAD)
    assert (found.severity, found.suppress_us, found.per) == (Severity.MEDIUM, None, ())
    assert (found.destinations, found.coupling, found.corrections) == (
        (),
        Coupling.IMMEDIATE,
        False,
    )


@pytest.mark.parametrize(
    "select",
    [
        "SELECT severity, notify FROM s WHERE severity = 'high' AND notify IS NOT NULL",
        "SELECT coalesce(severity, 'x') AS c FROM s WHERE (coupling > 1) AND suppress IN (1, 2)",
        "SELECT CASE WHEN severity THEN notify END AS c FROM s",
    ],
)
def test_columns_may_be_called_like_clauses(select: str) -> None:
    found = rule(f"CREATE RULE r AS {select} SEVERITY 'low' NOTIFY FILE 'a.ndjson'")
    assert (found.query, found.severity) == (select, Severity.LOW)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("CREATE RULE r AS", "rule 'r' has no SELECT after AS"),
        ("CREATE RULE r SELECT 1", "expected AS, got 'SELECT'"),
        (f"{HEAD} SEVERITY high", "expected a quoted string"),
        (
            f"{HEAD} SEVERITY 'loud'",
            "severity must be one of 'info', 'low', 'medium', 'high', 'critical', not 'loud'",
        ),
        (f"{HEAD} SEVERITY 'low' SEVERITY 'low'", "SEVERITY is given twice"),
        (f"{HEAD} SUPPRESS INTERVAL 1 HOUR", "expected FOR, got 'INTERVAL'"),
        (
            f"{HEAD} SUPPRESS FOR INTERVAL 1 MOMENT",
            "the interval is not valid: 'MOMENT' is not a unit of time; use microseconds, "
            "milliseconds, seconds, minutes, hours, days or weeks",
        ),
        (f"{HEAD} SUPPRESS FOR INTERVAL 0 SECONDS", "the interval must be greater than zero"),
        (
            f"{HEAD} SUPPRESS FOR INTERVAL 1 HOUR PER 7",
            "expected a name for a column: letters, digits and '_'",
        ),
        (
            f"{HEAD} NOTIFY somebody",
            "NOTIFY requires a quoted URL, STREAM name, FILE 'path', EMAIL 'address' or CALL "
            "function",
        ),
        (f"{HEAD} NOTIFY 'ftp://x/y'", "'ftp://x/y' is not a URL such as 'https://host/path'"),
        (f"{HEAD} NOTIFY 'https://'", "'https://' is not a URL such as 'https://host/path'"),
        (
            f"{HEAD} NOTIFY 'https://a:99999/'",
            "'https://a:99999/' is not a URL such as 'https://host/path'",
        ),
        (
            f"{HEAD} NOTIFY 'https://me:pw@x.org/'",
            "the URL must not have a user, password or fragment",
        ),
        (
            f"{HEAD} NOTIFY EMAIL 'nobody'",
            "'nobody' is not an e-mail address such as 'ops@host.org'",
        ),
        (f"{HEAD} NOTIFY FILE 'a', FILE 'a'", "file 'a' is notified twice"),
        (f"{HEAD} COUPLING LATER", "COUPLING must be IMMEDIATE or EPOCH, not LATER"),
        (f"{HEAD} WITH CARE", "expected CORRECTIONS, got 'CARE'"),
        ("CREATE RULE _r AS SELECT 1", "'_r': names that begin with '_' are reserved"),
    ],
)
def test_mistakes_are_named(text: str, sentence: str) -> None:
    with pytest.raises(BadDefinition) as refused:
        read_statements(text, "shop.sql")
    assert refused.value.message == sentence
    assert str(refused.value.origin) == "shop.sql:1"
