"""The live screen: whole frames, keys, and a project that goes away."""

from __future__ import annotations

import os
import pty
import re
import termios
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console
from typer.testing import Result

from headrace.api.get_request import GetRequest
from headrace.api.resources.alerts import AlertsRequest
from headrace.api.resources.balance import Balance
from headrace.api.resources.status import ProjectStatus, StatusRequest
from headrace.api.rule_service import RuleStatus
from headrace.cli import top as body
from headrace.cli.frame import frame
from headrace.cli.rates import Rates
from headrace.core.errors import Unavailable
from headrace.serving.alerts import Alert, AlertCounts, Alerts

from .conftest import STATUS, Told, document

AT = "2026-11-15T19:00:00Z"
RULE = RuleStatus(
    "break_in",
    1,
    "enabled",
    "critical",
    False,
    AT,
    "ann",
    "CREATE RULE",
    AlertCounts(7, 4, failed=1),
)
ALERT = Alert("9c1f", "break_in", 1, "critical", "open", {"user": "ann"}, AT, AT, "speed")
STREAM = msgspec.structs.replace(
    STATUS.streams[0], last_epoch_ms=700, trigger_ms=500, age_ms=1_200, shed=1_000
)
BUSY = msgspec.structs.replace(STATUS, streams=[STREAM], rules=[RULE])


def text_of(
    found: ProjectStatus, width: int, alerts: list[Alert], rates: Rates | None = None
) -> list[str]:
    screen = Console(file=StringIO(), width=width, highlight=False, markup=False)
    screen.print(frame(found, Alerts(alerts, 4, []), rates or seen(found), width))
    assert isinstance(screen.file, StringIO)
    return [line.rstrip() for line in screen.file.getvalue().splitlines()]


def seen(found: ProjectStatus) -> Rates:
    """Two looks a second apart, between which each stream has got a hundred events a partition."""
    rates = Rates(iter([0.0, 1.0]).__next__)
    before = [msgspec.structs.replace(s, end=[end - 100 for end in s.end]) for s in found.streams]
    rates.sample(before)
    rates.sample(found.streams)
    return rates


def test_a_narrow_frame_has_what_decides_whether_to_worry() -> None:
    assert text_of(BUSY, 80, [ALERT]) == [
        "shop  running  http://127.0.0.1:8080  since 2026-11-15 18:59 UTC",
        "",
        "stream  events/s  lag  behind  epoch  trigger   age  off",
        "clicks       200   10   1.58m  700ms    500ms  1.2s    0",
        "",
        "view      state     rows   age  generation  differences",
        "visitors  live        42  1.2s           3            0",
        "fresh     building     0  1.2s           0     none yet",
        "busiest   read",
        "",
        "rule      state    severity  alerts  open  waiting  failed",
        "break_in  enabled  critical       7     4        0       1",
        "",
        "1 of 4 open alerts, the most severe first",
        "2026-11-15 19:00  critical break_in  user=ann",
        "",
        "clicks: 1,000 events skipped by speed",
    ]


def test_a_wide_frame_has_the_rest_too() -> None:
    lines = text_of(BUSY, 160, [])
    assert lines[2].split() == [
        "stream", "source", "events/s", "lag", "behind", "epoch", "trigger", "age", "accepted",
        "late", "dead", "letters", "off",
    ]  # fmt: skip
    assert lines[3].split()[:4] == ["clicks", "http", "200", "█"]
    assert max(map(len, lines)) <= 160


@pytest.mark.parametrize("width", [80, 160])
def test_no_line_is_wider_than_the_screen_whatever_the_names(width: int) -> None:
    long = msgspec.structs.replace(STREAM, name="a_very_long_name_of_a_stream" * 3, end=[10**12])
    found = msgspec.structs.replace(BUSY, streams=[long], reason="")
    lines = text_of(found, width, [msgspec.structs.replace(ALERT, body={"x": "y" * 400})])
    assert all(len(line) <= width for line in lines)
    row = next(line for line in lines if line.startswith("a_very"))
    assert row.split()[-1] == "0"  # names give way before numbers do


def test_numbers_that_are_wrong_are_red_and_a_slow_epoch_is_yellow() -> None:
    off = msgspec.structs.replace(STREAM, balance=Balance(9, 8, 0, 0, 0), lag_events=50_000)
    screen = Console(file=StringIO(), width=80, force_terminal=True, color_system="standard")
    busy = msgspec.structs.replace(BUSY, streams=[off])
    screen.print(frame(busy, body.NO_ALERTS, seen(BUSY), 80))
    assert isinstance(screen.file, StringIO)
    colours = screen.file.getvalue()
    assert re.findall(r"\x1b\[33m *([\w,]+)\x1b", colours) == ["50,000", "700ms", "building"]
    assert re.findall(r"\x1b\[31m *(\d+)\x1b", colours) == ["1", "1"]


@pytest.mark.parametrize(
    ("state", "reason", "last"),
    [
        ("running", "", "no problems"),
        ("starting", "Spark is starting", "starting: Spark is starting"),
        # Somebody who may not read the whole project sees neither its problems nor the reason.
        ("degraded", "", "degraded"),
    ],
)
def test_only_a_project_that_is_running_has_no_problems(state: str, reason: str, last: str) -> None:
    found = msgspec.structs.replace(STATUS, state=state, reason=reason, problems=[])
    assert text_of(found, 80, [])[-1] == last


def test_rates_are_of_the_newest_seconds() -> None:
    rates = Rates(iter([0.0, 10.0, 11.0]).__next__)
    found = []
    for end in (0, 1_000, 1_010):
        rates.sample([msgspec.structs.replace(STREAM, end=[end])])
        found.append(rates.rate("clicks"))
    assert found == [None, None, 10.0]


def test_once_prints_one_frame_with_rates(
    told: Told, call: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body, "POLL_S", 0.0)
    result = call("top", "--once")
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert "clicks" in result.stdout
    assert "q quits" not in result.stdout
    said = document(call("top", "--json"))
    assert (said["name"], said["alerts"]) == ("shop", [])
    assert said["streams"][0]["balance"]["off"] == 0


class Going:
    """A project that answers, goes away, and answers again."""

    def __init__(self) -> None:
        self.looks = 0

    def __call__(self, project: Any) -> Any:
        self.looks += 1
        if self.looks == 2:
            raise Unavailable("nothing is listening at http://127.0.0.1:1")
        return self

    def ask(self, question: GetRequest[Any]) -> Any:
        if isinstance(question, AlertsRequest):
            # The newest of all might be those of one noisy rule.
            assert question == AlertsRequest(state="open", each=2, limit=5)
            return Alerts([ALERT], 1, [])
        assert isinstance(question, StatusRequest)
        return msgspec.structs.replace(BUSY, name=f"look{self.looks}")


def test_a_project_that_goes_away_is_waited_for(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.run.connect.connect", Going())
    keys = iter(["", "x", "q"])
    screen = Console(file=StringIO(), width=80)
    shown: list[list[str]] = []
    view = body.Screen(shop)

    def press(seconds: float) -> str:
        assert seconds <= body.POLL_S
        with screen.capture() as captured:
            screen.print(*view.shown(80), sep="\n")
        shown.append(captured.get().splitlines())
        return next(keys)

    body.watch(view, screen, press)
    assert [lines[0].split()[0] for lines in shown] == ["look1", "look1", "look3"]
    assert shown[1][0].startswith("look1  not connected  ")
    assert not [line for line in shown[1] if line.startswith("problem") or "no problems" in line]
    assert [lines[-1] for lines in shown] == [
        "q quits",
        "nothing is listening at http://127.0.0.1:1; showing the last known numbers",
        "q quits",
    ]


def test_q_is_read_without_enter_and_the_terminal_is_left_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    person, terminal = pty.openpty()
    with open(terminal) as stdin:
        monkeypatch.setattr(body.sys, "stdin", stdin)
        before = termios.tcgetattr(terminal)
        with body.keyboard() as keys:
            assert keys(0.0) == ""
            os.write(person, b"xq")
            assert [keys(5.0), keys(5.0), keys(0.0)] == ["x", "q", ""]
        assert termios.tcgetattr(terminal) == before
    os.close(person)
