"""`headrace top`: a live screen of a running project, refreshed twice a second until q or Ctrl-C.

It polls the status over HTTP. If the project is stopped or restarted, the screen shows that it is
not reachable, and continues when it is. With `--once` one frame is printed; it polls twice, so that
there are rates.
tests/cli/test_top.py presses keys and stops the project.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace
from rich.console import Console, Group, RenderableType
from rich.live import Live

from headrace.api.resources.alerts import AlertsRequest
from headrace.api.resources.status import ProjectStatus, StatusRequest
from headrace.api.service import Service
from headrace.cli.folder import open_service
from headrace.cli.frame import frame
from headrace.cli.rates import Rates
from headrace.cli.report import Report, console, dim
from headrace.core.errors import Unavailable
from headrace.serving.alerts import Alerts

POLL_S = 0.5
ALERTS, ALERTS_EACH = 5, 2  # in all, and of each rule, so that none hides the others
NO_ALERTS = Alerts([], 0, [])
NOT_CONNECTED = "not connected"
Keys = Callable[[float], str]


class Screen:
    """The last status of a project."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._rates = folder, Rates(clock)
        self.status: ProjectStatus | None = None
        self.alerts = NO_ALERTS
        self._error = ""

    def poll(self) -> None:
        """Poll the status; if the project is not reachable, the screen shows that."""
        try:
            with open_service(self._folder) as service:
                self.sample(service)
            self._error = ""
        except Unavailable as error:
            self._error = error.message
            if self.status is not None:
                self.status = replace(self.status, state=NOT_CONNECTED, reason="", problems=[])

    def sample(self, service: Service) -> None:
        self.status = service.ask(StatusRequest())
        self._rates.sample(self.status.streams)
        wanted = AlertsRequest(state="open", each=ALERTS_EACH, limit=ALERTS)
        self.alerts = service.ask(wanted) if self.status.rules else NO_ALERTS

    def shown(self, width: int) -> list[RenderableType]:
        """The frame, and below it the keys, or why it is stale."""
        seen = [frame(self.status, self.alerts, self._rates, width)] if self.status else []
        below = f"{self._error}; showing the last known numbers" if self._error else "q quits"
        return [*seen, dim(below)]


def once(folder: Path, sleep: Callable[[float], None] = time.sleep) -> Report:
    """One frame, with rates."""
    screen, width = Screen(folder), console().width
    with open_service(folder) as service:
        for pause_s in (POLL_S, 0.0):
            screen.sample(service)
            sleep(pause_s)
    assert screen.status is not None
    document_fields: dict[str, Any] = {
        **msgspec.to_builtins(screen.status),
        "alerts": screen.alerts.alerts,
    }
    return Report(document_fields, screen.shown(width)[:-1])


def top(folder: Path) -> int:
    """Show the live screen."""
    with keyboard() as keys:
        watch(Screen(folder), console(), keys)
    return 0


def watch(view: Screen, terminal: Console, keys: Keys) -> None:
    """Show a screen until q is pressed."""
    with Live(console=terminal, screen=terminal.is_terminal, auto_refresh=False) as live:
        while True:
            began = time.monotonic()
            view.poll()
            live.update(Group(*view.shown(terminal.width)), refresh=True)
            if keys(max(0.0, POLL_S - (time.monotonic() - began))) in ("q", "Q"):
                return


@contextmanager
def keyboard() -> Iterator[Keys]:
    """The key that is pressed within some seconds, without Enter; "" for none."""
    if not sys.stdin.isatty():
        yield _sleeping
        return
    import termios
    import tty

    handle = sys.stdin.fileno()
    before = termios.tcgetattr(handle)
    try:
        tty.setcbreak(handle)
        yield _pressed
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, before)


def _sleeping(seconds: float) -> str:
    time.sleep(seconds)
    return ""


def _pressed(seconds: float) -> str:
    # From the file descriptor, because select does not see Python's own buffer.
    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    return os.read(sys.stdin.fileno(), 1).decode("ascii", "replace") if ready else ""
