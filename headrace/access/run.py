"""Users of a run: the first admin, and the user `local` for commands on this machine.

A process that can read the state folder can read the store, so a token in that folder reveals
nothing more. Its user `local` exists while the run lasts; the next run removes the one of a killed
run. tests/access/test_access.py checks it.
"""

from __future__ import annotations

from headrace.access.access import Access
from headrace.access.audit_log import Actor
from headrace.access.operation import Role
from headrace.access.token import TokenRequest
from headrace.access.user import LOCAL
from headrace.core.time import DAY, SECOND

ADMIN, FIRST_LIFE_US = "admin", 90 * DAY
_HEADRACE = Actor("headrace")


def first_token(access: Access) -> str | None:
    """The token of `admin`, who is created if there are no users yet; else None."""
    if any(user.name != LOCAL for user in access.users()):
        return None
    access.add_user(ADMIN, Role.ADMIN, _HEADRACE)
    life_s = min(FIRST_LIFE_US, access.policy.token_life_max_us) // SECOND
    request = TokenRequest(ADMIN, "first", life=f"{life_s} seconds")
    return access.create_token(request, _HEADRACE).secret


def begin_run(access: Access) -> str:
    """The token of this run."""
    end_run(access)
    access.add_user(LOCAL, Role.ADMIN, _HEADRACE)
    request = TokenRequest(LOCAL, "run", life="3650 days")
    return access.create_token(request, _HEADRACE, for_run=True).secret


def begin_job(access: Access) -> str:
    """The token of this run of a job; the users of a job belong to its server."""
    access.remove_users(_HEADRACE)
    return begin_run(access)


def end_run(access: Access) -> None:
    if any(user.name == LOCAL for user in access.users()):
        access.remove_user(LOCAL, _HEADRACE)
