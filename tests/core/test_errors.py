"""Each condition, read as a whole sentence and with its two codes; a new one needs a row here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.core import errors
from headrace.core.errors import HeadraceError
from headrace.core.origin import Origin

AT = Origin("shop.sql", 3)

# Condition -> what it is made from, the whole sentence, exit code, HTTP status.
SENTENCES: dict[str, tuple[HeadraceError, str, int, int]] = {
    error.condition: (error, text, exit_code, http_status)
    for error, text, exit_code, http_status in (
        (
            errors.HeadraceError("something is wrong"),
            "HeadraceError: something is wrong",
            1,
            400,
        ),
        (
            errors.BadProject("there is no headrace.toml in shop", hint="run `headrace new DIR`."),
            "BadProject: there is no headrace.toml in shop\n  hint: run `headrace new DIR`.",
            1,
            400,
        ),
        (
            errors.BadSetting("there is no setting 'prot'", origin=Origin("headrace.toml", 1)),
            "BadSetting: there is no setting 'prot'\n  at headrace.toml:1",
            1,
            400,
        ),
        (
            errors.BadDefinition(
                "'clicks' is defined twice",
                detail="the first definition is at shop.sql:1.",
                hint="names are unique in a project.",
                origin=AT,
            ),
            "BadDefinition: 'clicks' is defined twice\n"
            "  detail: the first definition is at shop.sql:1.\n"
            "  hint: names are unique in a project.\n"
            "  at shop.sql:3",
            1,
            400,
        ),
        (
            errors.UnknownName(
                "view 'v' reads 'click', which is not defined",
                hint="did you mean 'clicks'?",
                origin=AT,
            ),
            "UnknownName: view 'v' reads 'click', which is not defined\n"
            "  hint: did you mean 'clicks'?\n"
            "  at shop.sql:3",
            1,
            400,
        ),
        (
            errors.UnknownColumn(
                "there is no column 'ulr'",
                detail="there are: user, url.",
                origin=Origin("shop.sql", 3, 8),
            ),
            "UnknownColumn: there is no column 'ulr'\n"
            "  detail: there are: user, url.\n"
            "  at shop.sql:3:8",
            1,
            400,
        ),
        (
            errors.Unsupported("QUALIFY is not supported in a view", origin=AT),
            "Unsupported: QUALIFY is not supported in a view\n  at shop.sql:3",
            1,
            400,
        ),
        (
            errors.BadQuery("expected a SELECT", origin="query:1"),
            "BadQuery: expected a SELECT\n  at query:1",
            1,
            400,
        ),
        (
            errors.Refused("the function 'reflect' is not let through"),
            "Refused: the function 'reflect' is not let through",
            1,
            403,
        ),
        (
            errors.LimitReached(
                "the query timed out after 30 seconds and was cancelled", hint="ask for fewer rows."
            ),
            "LimitReached: the query timed out after 30 seconds and was cancelled\n"
            "  hint: ask for fewer rows.",
            1,
            413,
        ),
        (
            errors.Cancelled("the query was cancelled before it completed"),
            "Cancelled: the query was cancelled before it completed",
            1,
            409,
        ),
        (
            errors.BadRequest("'x' is not a key of view 'v'", detail="available keys: url."),
            "BadRequest: 'x' is not a key of view 'v'\n  detail: available keys: url.",
            1,
            400,
        ),
        (
            errors.TooSlow("the request's body was not received within 60 seconds"),
            "TooSlow: the request's body was not received within 60 seconds",
            1,
            408,
        ),
        (
            errors.Overfull("the server has reached its connection limit", hint="try again."),
            "Overfull: the server has reached its connection limit\n  hint: try again.",
            5,
            503,
        ),
        (
            errors.Unauthenticated(
                "the request has no token",
                hint="send the header 'Authorization: Bearer TOKEN'.",
            ),
            "Unauthenticated: the request has no token\n"
            "  hint: send the header 'Authorization: Bearer TOKEN'.",
            1,
            401,
        ),
        (
            errors.Forbidden("ada may not read view 'visitors'"),
            "Forbidden: ada may not read view 'visitors'",
            1,
            403,
        ),
        (
            errors.NotFound("there is no view 'visitor'", hint="did you mean 'visitors'?"),
            "NotFound: there is no view 'visitor'\n  hint: did you mean 'visitors'?",
            3,
            404,
        ),
        (
            errors.MethodNotAllowed("PUT is not for /v1/query", hint="use POST."),
            "MethodNotAllowed: PUT is not for /v1/query\n  hint: use POST.",
            1,
            405,
        ),
        (
            errors.Unavailable("the store cannot be written now"),
            "Unavailable: the store cannot be written now",
            5,
            503,
        ),
        (
            errors.Overloaded("256 requests are in progress"),
            "Overloaded: 256 requests are in progress",
            5,
            429,
        ),
        (
            errors.NotReady("view 'v' is being built", hint="try again in a moment."),
            "NotReady: view 'v' is being built\n  hint: try again in a moment.",
            5,
            503,
        ),
        (
            errors.PortInUse("another process listens on 8080"),
            "PortInUse: another process listens on 8080",
            5,
            503,
        ),
        (
            errors.NoJava("no Java was found", hint="pip install 'headrace[java]'."),
            "NoJava: no Java was found\n  hint: pip install 'headrace[java]'.",
            5,
            503,
        ),
        (
            errors.DiskFull("the disk has no room"),
            "DiskFull: the disk has no room",
            5,
            507,
        ),
        (
            errors.AlreadyRunning("another process runs this project", hint="stop it first."),
            "AlreadyRunning: another process runs this project\n  hint: stop it first.",
            5,
            503,
        ),
        (
            errors.Conflict("job 'shop' is paused", hint="`headrace job resume shop` resumes it."),
            "Conflict: job 'shop' is paused\n  hint: `headrace job resume shop` resumes it.",
            1,
            409,
        ),
        (
            errors.Restarting("job 'shop' is restarting", detail="nothing was accepted."),
            "Restarting: job 'shop' is restarting\n  detail: nothing was accepted.",
            5,
            503,
        ),
        (
            errors.Fenced("another process has taken over this project"),
            "Fenced: another process has taken over this project",
            5,
            503,
        ),
        (
            errors.CorruptLog("a record is damaged", origin="log/clicks/0/0.log"),
            "CorruptLog: a record is damaged\n  at log/clicks/0/0.log",
            1,
            500,
        ),
        (
            errors.CorruptMaster("a file is missing", hint="restore a backup."),
            "CorruptMaster: a file is missing\n  hint: restore a backup.",
            1,
            500,
        ),
        (
            errors.CorruptStore("a run is damaged", detail="nothing is computed from it."),
            "CorruptStore: a run is damaged\n  detail: nothing is computed from it.",
            1,
            500,
        ),
        (
            errors.UnsupportedFormat(
                "the log at clicks has format version 2, but Headrace 0.1.0 supports version 1",
                detail="it was written by a newer Headrace; nothing was changed.",
                hint="use the Headrace that wrote it, or a newer one.",
            ),
            "UnsupportedFormat: the log at clicks has format version 2, but Headrace 0.1.0 "
            "supports version 1\n"
            "  detail: it was written by a newer Headrace; nothing was changed.\n"
            "  hint: use the Headrace that wrote it, or a newer one.",
            1,
            500,
        ),
        (
            errors.BadBackup("a backup is not whole", hint="take another one."),
            "BadBackup: a backup is not whole\n  hint: take another one.",
            1,
            400,
        ),
        (
            errors.EngineFailed("Spark failed", detail="a stage failed 4 times."),
            "EngineFailed: Spark failed\n  detail: a stage failed 4 times.",
            1,
            500,
        ),
        (
            errors.InternalError("the server met a problem", detail="request a1."),
            "InternalError: the server met a problem\n  detail: request a1.",
            1,
            500,
        ),
    )
}


def conditions(base: type[HeadraceError] = HeadraceError) -> Iterator[type[HeadraceError]]:
    """All of the product's; another test may have made one of its own."""
    yield base
    for below in base.__subclasses__():
        if below.__module__.startswith("headrace."):
            yield from conditions(below)


OURS = sorted({c.__name__ for c in conditions() if c.__module__.startswith("headrace.")})


def test_every_condition_is_in_the_table() -> None:
    assert sorted(SENTENCES) == OURS


def test_every_condition_says_when_it_is_met() -> None:
    assert [c.__name__ for c in conditions() if not (c.__doc__ or "").strip()] == []


@pytest.mark.parametrize("condition", OURS)
def test_condition_is_one_sentence_with_its_codes(condition: str) -> None:
    error, text, exit_code, http_status = SENTENCES[condition]
    assert str(error) == text
    assert (error.exit_code, error.http_status) == (exit_code, http_status)


@pytest.mark.parametrize("condition", OURS)
def test_condition_has_the_same_five_fields_everywhere(condition: str) -> None:
    error = SENTENCES[condition][0]
    fields = error.as_dict()
    assert list(fields) == ["condition", "message", "detail", "hint", "origin"]
    assert fields["condition"] == condition
    said = [fields["message"], fields["detail"], fields["hint"], fields["origin"]]
    assert [part for part in said if part and part not in str(error)] == []
    assert str(error).count("\n") == sum(part is not None for part in said) - 1


def test_what_is_not_said_is_none_and_takes_no_line() -> None:
    error = errors.NotFound("there is no view 'v'")
    assert error.as_dict() == {
        "condition": "NotFound",
        "message": "there is no view 'v'",
        "detail": None,
        "hint": None,
        "origin": None,
    }
    assert str(error) == "NotFound: there is no view 'v'"


def test_only_what_may_pass_by_itself_exits_with_five() -> None:
    retried = {c.__name__ for c in conditions(errors.Unavailable)}
    assert {name for name, row in SENTENCES.items() if row[0].exit_code == 5} == retried


@pytest.mark.parametrize(
    ("line", "column", "place"),
    [(1, 0, "shop.sql:3"), (1, 7, "shop.sql:3"), (2, 0, "shop.sql:4"), (4, 9, "shop.sql:6:9")],
)
def test_line_of_a_part_becomes_the_line_of_its_file(line: int, column: int, place: str) -> None:
    # The column of the first line is unknown: the part does not begin at the line's start.
    assert str(AT.below(line, column)) == place
