"""`headrace top`: a running project, looked at twice a second until q or Ctrl-C.

It asks over HTTP what `headrace status` asks. A project that stops, or is started again, does not
end it: the screen says that nothing answers, and goes on when something does. With `--once` one
frame is printed; it looks twice for it, so that there are rates.
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

from rich.console import Console, Group, RenderableType
from rich.live import Live

from headrace.api.service import Service, Status
from headrace.cli.folder import asked
from headrace.cli.frame import frame
from headrace.cli.rates import Rates
from headrace.cli.report import Report, console, dim
from headrace.cli.status import document
from headrace.core.errors import Unavailable
from headrace.serving.ledger import Alert, Wanted

LOOK_S = 0.5
ALERTS = 5
Keys = Callable[[float], str]


class Screen:
    """What was last seen of a project."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._rates = folder, Rates(clock)
        self.status: Status | None = None
        self.alerts: list[Alert] = []
        self._silence = ""

    def look(self) -> None:
        """Ask; what cannot be reached is said on the screen."""
        try:
            with asked(self._folder) as service:
                self.see(service)
            self._silence = ""
        except Unavailable as error:
            self._silence = error.message

    def see(self, service: Service) -> None:
        self.status = service.status()
        self._rates.see(self.status.streams)
        rules = self.status.rules
        self.alerts = service.rulebook.alerts(Wanted(limit=ALERTS)).alerts if rules else []

    def shown(self, width: int) -> list[RenderableType]:
        """The frame, and below it what to press, or why it is old."""
        seen = [frame(self.status, self.alerts, self._rates, width)] if self.status else []
        below = f"{self._silence}; these are its last numbers" if self._silence else "q quits"
        return [*seen, dim(below)]


def once(folder: Path, sleep: Callable[[float], None] = time.sleep) -> Report:
    """One frame, with rates."""
    screen, width = Screen(folder), console().width
    with asked(folder) as service:
        for pause_s in (LOOK_S, 0.0):
            screen.see(service)
            sleep(pause_s)
    assert screen.status is not None
    said: dict[str, Any] = {**document(screen.status), "alerts": screen.alerts}
    return Report(said, screen.shown(width)[:-1])


def top(folder: Path) -> int:
    """Look again and again."""
    with keyboard() as keys:
        watch(Screen(folder), console(), keys)
    return 0


def watch(view: Screen, terminal: Console, keys: Keys) -> None:
    """Show a screen until q is pressed."""
    with Live(console=terminal, screen=terminal.is_terminal, auto_refresh=False) as live:
        while True:
            began = time.monotonic()
            view.look()
            live.update(Group(*view.shown(terminal.width)), refresh=True)
            if keys(max(0.0, LOOK_S - (time.monotonic() - began))) in ("q", "Q"):
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
    # From the handle, because what Python has read ahead is not seen by select.
    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    return os.read(sys.stdin.fileno(), 1).decode("ascii", "replace") if ready else ""
