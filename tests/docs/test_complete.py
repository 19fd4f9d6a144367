"""What the code has is documented, and what is documented the code has."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import typer.main

import headrace
from headrace.api.needs import AUTHENTICATED, PUBLIC, SERVER, Need
from headrace.api.resources.balance import Balance
from headrace.api.resources.status import ProjectStatus, StreamStatus, ViewStatus
from headrace.api.routes import ROUTES
from headrace.cli.main import app
from headrace.core.aggregate import AGGREGATES, SYNONYMS
from headrace.core.errors import HeadraceError, InternalError
from headrace.core.meters import REGISTRY
from headrace.core.time import duration_us
from headrace.define.definitions import PaceDefinition, StreamDefinition, Watermark
from headrace.define.layout import Layout
from headrace.define.setting import documented_of
from headrace.define.settings import documented
from headrace.define.statements import _STREAM_OPTIONS
from headrace.ingest.connector import documented_options
from headrace.run.metrics import exposition
from headrace.server.meters import REGISTRY as SERVER_REGISTRY
from headrace.server.metrics import JobMetrics
from headrace.server.metrics import exposition as server_exposition
from headrace.server.routes import ROUTES as SERVER_ROUTES
from headrace.server.settings import ServerSettings
from headrace.serving.alert_metrics import AlertMetrics, DeliveryMetrics

from .pages import code, codes, page, prose, sections, table

SOURCES = ("http", "tcp", "files", "generator")


def test_every_setting_is_documented_with_its_default_and_meaning() -> None:
    rows = [
        (code(key), default, meaning)
        for key, default, meaning in table("docs/settings.md", "setting")
    ]
    shown = [
        (key, "required" if key == "name" else f"`{default}`", meaning)
        for key, default, meaning in documented()
    ]
    assert rows == shown


def test_every_setting_of_a_server_is_documented_with_its_default_and_meaning() -> None:
    rows = [
        (code(key), code(default), meaning)
        for key, default, meaning in table("docs/settings.md", "server setting")
    ]
    assert rows == [
        (key, str(default), meaning) for key, default, meaning in documented_of(ServerSettings)
    ]


def test_every_route_of_a_server_is_documented() -> None:
    rows = [(code(row[0]), *row[1:]) for row in table("docs/server.md", "route")]
    assert rows == [
        (f"{route.method} {route.path}", route.summary, needed(route.needs))
        for route in SERVER_ROUTES
    ]


def needed(need: Need) -> str:
    """What a route needs, as a page says it."""
    if need.on in (PUBLIC, AUTHENTICATED):
        return {PUBLIC: "nothing", AUTHENTICATED: "a token"}[need.on]
    return f"`{need.operation}` on {'everything' if need.on == SERVER else f'the {need.on}'}"


def test_every_error_condition_is_documented_with_its_codes() -> None:
    rows = {
        code(name): (int(exit_code), int(status))
        for name, exit_code, status, _ in table("docs/errors.md", "condition")
    }
    assert rows == {each.__name__: (each.exit_code, each.http_status) for each in _conditions()}


def _conditions() -> Iterator[type[HeadraceError]]:
    """All conditions of the package; tests may define others."""
    assert InternalError in HeadraceError.__subclasses__()
    waiting = HeadraceError.__subclasses__()
    while waiting:
        each = waiting.pop()
        waiting += each.__subclasses__()
        if each.__module__.startswith("headrace."):
            yield each


def test_every_route_is_documented() -> None:
    assert list(sections(page("docs/http.md"))) == [
        f"{route.method} {route.path}" for route in ROUTES
    ]


def test_every_parameter_and_body_of_a_route_is_documented() -> None:
    found = sections(page("docs/http.md"))
    for route in ROUTES:
        text = found[f"{route.method} {route.path}"]
        for parameter in route.parameters:
            wanted = "key column" if parameter.name == "keys" else parameter.name
            assert wanted in text or parameter.where == "path", f"{route.path} lacks {wanted}"
        if len(route.bodies) > 1:
            assert [body.media for body in route.bodies if body.media not in text] == []


def test_every_command_is_documented() -> None:
    headings = list(sections(page("docs/cli.md")))
    assert headings == [f"headrace {name}" for name in _commands()]


def test_every_option_of_a_command_is_documented() -> None:
    found = sections(page("docs/cli.md"))
    for name, command in _commands().items():
        text = found[f"headrace {name}"]
        own = {option for p in command.params for option in p.opts if option.startswith("--")}
        told = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)) - {"--help"}
        # `run` has its options in a table; --json is told at the head of the page.
        assert told - own == set(), name
        assert own - told - {"--help", "--json"} == set(), name


def _commands() -> dict[str, typer.main.TyperCommand]:
    """All commands by name; those of a group as `group command`."""
    found = {}
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        found |= {f"{name} {n}": c for n, c in inner.items()} if inner else {name: command}
    return found


def test_every_exit_code_is_documented() -> None:
    rows = {int(number) for number, _ in table("docs/cli.md", "exit code")}
    assert {each.exit_code for each in _conditions()} | {0, 2, 130} == rows


def test_every_aggregate_is_documented_with_its_other_names() -> None:
    rows = {code(row[0]): codes(row[1]) for row in table("docs/sql.md", "aggregate")}
    assert list(rows) == list(AGGREGATES)
    told = {
        other: name for name, others in rows.items() for other in others if other.isidentifier()
    }
    assert {other: name for other, name in told.items() if other != "count_if"} == SYNONYMS


def test_aggregates_that_estimate_say_their_error() -> None:
    for row in table("docs/sql.md", "aggregate"):
        estimate = AGGREGATES[code(row[0])].estimate
        assert ("estimate" in row[-1]) == (estimate is not None)
        assert estimate is None or f"{estimate.error * 100:g} %" in row[-1]


def test_every_option_of_a_stream_is_documented() -> None:
    assert [code(row[0]) for row in table("docs/sql.md", "option")] == list(_STREAM_OPTIONS)
    said = (*fields(StreamDefinition), *fields(PaceDefinition))
    defaults = {item.name.removesuffix("_us"): item.default for item in said}
    for name, default, _ in table("docs/sql.md", "option"):
        if isinstance(defaults.get(code(name)), str):
            assert code(default) == defaults[code(name)]
    times = {item.name: item.default for item in fields(Watermark)}
    for name, default, _ in table("docs/sql.md", "option"):
        if not code(name).startswith("watermark."):
            continue
        assert duration_us(code(default)) == times[code(name).removeprefix("watermark.") + "_us"]


def test_every_option_of_a_connector_is_documented() -> None:
    rows = [
        (code(source), code(option), code(default), meaning)
        for source, option, default, meaning in table("docs/sql.md", "source")
    ]
    shown = [
        (source, name, default or ("made up" if "." in name else "required"), meaning)
        for source in SOURCES
        for name, default, meaning in documented_options(source)
    ]
    assert rows == shown


def test_every_metric_is_documented_with_its_kind_and_meaning(tmp_path: Path) -> None:
    stream = StreamStatus("s", "http", [0], [0], [0], [0], 0, 0, 0, None, Balance(0, 0, 0, 0, 0))
    view = ViewStatus("v", "mergeable", "live", "s", 0, 0)
    status = ProjectStatus("p", "running", "", None, None, [stream], [view])
    text = exposition(
        status, AlertMetrics({("r", "low"): 0}, {"file": DeliveryMetrics()}), tmp_path
    ).decode()
    exposed = dict(re.findall(r"^# HELP (headrace_\w+) (.+)$", text, re.MULTILINE))
    kinds = dict(re.findall(r"^# TYPE (headrace_\w+) (.+)$", text, re.MULTILINE))
    assert [
        (code(name), kind, meaning) for name, kind, _, meaning in table("docs/metrics.md", "metric")
    ] == [(name, kinds[name], meaning) for name, meaning in exposed.items()]


def test_every_metric_of_a_server_is_documented() -> None:
    text = server_exposition([JobMetrics("shop", "running", 0.5)]).decode()
    exposed = dict(re.findall(r"^# HELP (headrace_\w+) (.+)$", text, re.MULTILINE))
    kinds = dict(re.findall(r"^# TYPE (headrace_\w+) (.+)$", text, re.MULTILINE))
    shared = {code(row[0]) for row in table("docs/metrics.md", "metric")}
    told = table("docs/metrics.md", "metric of a server")
    assert [(code(name), kind, meaning) for name, kind, _, meaning in told] == [
        (name, kinds[name], meaning) for name, meaning in exposed.items() if name not in shared
    ]
    assert shared & set(exposed) <= set(codes(page("docs/metrics.md")))
    labels = {
        f"{meter.describe()[0].name}_total": meter._labelnames  # type: ignore[attr-defined]
        for meter in SERVER_REGISTRY._collector_to_names
    }
    for name, kind, said, _ in told:
        if kind == "counter":
            assert tuple(codes(said)) == labels[code(name)]


def test_every_label_of_a_metric_is_documented() -> None:
    told = {code(row[0]): tuple(codes(row[2])) for row in table("docs/metrics.md", "metric")}
    for meter in REGISTRY._collector_to_names:
        family = meter.describe()[0]  # type: ignore[attr-defined]
        name = f"{family.name}_total" if family.type == "counter" else family.name
        assert told[name] == meter._labelnames, name  # type: ignore[attr-defined]


def test_every_place_in_the_state_folder_is_documented() -> None:
    layout, told = Layout(Path("state")), prose(page("docs/operations.md"))
    places = (layout.store.path, layout.lock, layout.running)
    places += (layout.work("run").parent, layout.access, layout.token, layout.server_key)
    for place in (*places, layout.logs, layout.master("s").parent):
        assert place.name in told


def test_every_failpoint_is_documented() -> None:
    root = Path(headrace.__file__).parent
    texts = [path.read_text("utf-8") for path in root.rglob("*.py")]
    used = {name for text in texts for name in re.findall(r'failpoint\("([a-z.]+)"\)', text)}
    assert {code(row[0]) for row in table("CONTRIBUTING.md", "failpoint")} == used


def test_the_changelog_begins_with_this_version() -> None:
    assert next(iter(sections(page("CHANGELOG.md")))) == headrace.__version__


def import_contracts(kind: str) -> list[dict[str, Any]]:
    settings = tomllib.loads(page("pyproject.toml"))["tool"]["importlinter"]
    return [contract for contract in settings["contracts"] if contract["type"] == kind]


def test_the_rooms_of_the_architecture_are_in_the_layers_of_the_import_contract() -> None:
    [contract] = import_contracts("layers")
    layers = contract["layers"]
    rooms = [
        (room, str(number))
        for number, layer in zip(range(len(layers), 0, -1), layers, strict=True)
        for room in re.split(r" [|:] ", layer)
    ]
    assert [(code(row[0]), row[1]) for row in table("ARCHITECTURE.md", "room")] == rooms


def test_what_the_architecture_forbids_a_room_is_an_import_contract() -> None:
    rows = table("ARCHITECTURE.md", "room")
    forbidden = {code(row[0]): set(row[3].replace("`", "").split("; ")) - {""} for row in rows}
    checked = set()
    for contract in import_contracts("forbidden"):
        rooms = {module.removeprefix("headrace.") for module in contract["source_modules"]}
        kind, _, what = contract["name"].partition(" that may not ")
        if kind == "rooms":
            assert rooms == {room for room, said in forbidden.items() if what in said}, what
            checked.add(what)
        else:
            excepted = set(re.findall(r"\w+", kind)) & set(forbidden)
            assert rooms == set(forbidden) - excepted, kind
            words = prose(page("ARCHITECTURE.md")).replace("`", "").split()
            assert kind.partition(";")[0] in " ".join(words)
    # No import shows these; tests of their rooms do.
    assert set.union(*forbidden.values()) - checked == {
        "act", "decide what is sent", "load a project's Python", "use anything but the HTTP API"
    }  # fmt: skip
