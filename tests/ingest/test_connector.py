"""The table of connectors, their documented options, and every refusal."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.core.errors import BadDefinition
from headrace.core.problems import Problems
from headrace.ingest.connector import SOURCES, check_options, documented_options
from headrace.ingest.files import FileConnector
from headrace.ingest.generator import GeneratorConnector
from headrace.ingest.tcp import TcpConnector

from .conftest import Bench, stream

GOOD = {
    "http": {},
    "tcp": {"port": "7000", "host": "0.0.0.0", "acks": "on"},
    "files": {"path": "inbox/*.ndjson", "mode": "tail", "poll": "5 seconds", "header": "false"},
    "generator": {"rate": "0.5", "seed": "7", "late_by": "1 hour", "user.values": "a,b"},
}


@pytest.mark.parametrize("source", GOOD)
def test_good_options_pass_and_nothing_is_opened(source: str) -> None:
    check_options(stream(source=source, options=GOOD[source]))


def test_each_source_but_http_has_a_connector(bench: Bench, tmp_path: Path) -> None:
    given = bench.intake(), tmp_path, Problems("source")
    made = {
        source: type(kind.connect(stream(source=source, options=GOOD[source]), *given))
        for source, kind in SOURCES.items()
        if kind.connect
    }
    assert made == {"tcp": TcpConnector, "files": FileConnector, "generator": GeneratorConnector}


@pytest.mark.parametrize("source", GOOD)
def test_every_option_has_a_meaning_and_every_default_can_be_written(source: str) -> None:
    for name, default, meaning in documented_options(source):
        assert meaning
        if default is not None and "<" not in name:
            check_options(stream(source=source, options=GOOD[source] | {name: default}))


def refusal(source: str, **options: str) -> str:
    with pytest.raises(BadDefinition) as refused:
        check_options(stream(source=source, options=options))
    return str(refused.value)


def test_an_unknown_source_is_refused() -> None:
    assert refusal("tpc") == (
        "BadDefinition: stream 'clicks' has an unknown source: 'tpc'\n"
        "  hint: did you mean 'tcp'? available sources: http, tcp, files, generator.\n"
        "  at shop.sql:3"
    )


def test_an_unknown_option_is_refused_with_the_known_ones() -> None:
    assert refusal("tcp", prot="7000") == (
        "BadDefinition: the source 'tcp' of stream 'clicks' has no option 'prot'\n"
        "  hint: did you mean 'port'? available options: host, port, acks, connections_max, idle.\n"
        "  at shop.sql:3"
    )
    assert "hint: it has no options." in refusal("http", port="1")


def test_a_required_option_is_asked_for() -> None:
    assert refusal("files") == (
        "BadDefinition: the source 'files' of stream 'clicks' requires the option 'path'\n"
        "  hint: meaning of 'path': pattern of files in the project, such as 'inbox/*.ndjson'.\n"
        "  at shop.sql:3"
    )


def test_a_wrong_value_is_refused_with_what_it_must_be() -> None:
    assert refusal("generator", malformed="2") == (
        "BadDefinition: option 'malformed' of stream 'clicks' must be a fraction between 0 and 1, "
        "got '2'\n"
        "  hint: meaning of 'malformed': fraction of events that are malformed (default '0.01').\n"
        "  at shop.sql:3"
    )


@pytest.mark.parametrize(
    ("source", "name", "text", "must_be"),
    [
        ("tcp", "port", "70000", "a whole number from 0 to 65535"),
        ("tcp", "port", "7_0", "a whole number from 0 to 65535"),
        ("tcp", "acks", "yes", "'on' or 'off'"),
        ("tcp", "host", " ", "a non-empty string"),
        ("files", "path", "/etc/*", "a pattern of files inside the project"),
        ("files", "path", "in/../../x", "a pattern of files inside the project"),
        ("files", "poll", "soon", "a duration such as '10 minutes'"),
        ("files", "poll", "0 seconds", "a duration such as '10 minutes'"),
        ("files", "mode", "follow", "'import' or 'tail'"),
        ("generator", "rate", "0", "a number above 0"),
        ("generator", "rate", "nan", "a number above 0"),
        ("generator", "out_of_order", "often", "a fraction between 0 and 1"),
        ("generator", "user.values", " , ", "a comma-separated list of STRING"),
        ("generator", "ms.values", "1,x", "a comma-separated list of BIGINT"),
        ("generator", "user.cardinality", "0", "a whole number from 1 to 1000000"),
    ],
)
def test_each_value_is_checked(source: str, name: str, text: str, must_be: str) -> None:
    told = refusal(source, **(GOOD[source] | {name: text}))
    assert f"option '{name}' of stream 'clicks' must be {must_be}" in told
    assert f", got '{text}'" in told


def test_options_of_a_column_that_is_not_there_are_refused() -> None:
    told = refusal("generator", **{"usr.values": "a"})
    assert "has no option 'usr.values'" in told
    assert "did you mean 'user.values'?" in told


def test_packed_files_cannot_be_followed() -> None:
    told = refusal("files", path="in/*.gz", mode="tail")
    assert "'mode' of stream 'clicks' must be 'import' for compressed files, got 'tail'" in told


def test_a_csv_stream_with_an_undeclared_id_is_refused() -> None:
    with pytest.raises(BadDefinition, match="the id 'event_id' of stream 'clicks' is not"):
        check_options(stream(format="csv", id="event_id"))
