"""What a run needs of access: the first user, and a user of its own for commands on this machine.

Whoever can read the state folder can read the store, so a token that lies there gives nothing away.
The user `local`, to whom it belongs, is there while the run lasts; a run that was killed is tidied
up by the next. tests/access/test_access.py checks it.
"""

from __future__ import annotations

from headrace.access.access import Access
from headrace.access.audit_log import By
from headrace.access.operation import Role
from headrace.access.token import TokenAsked
from headrace.access.user import LOCAL
from headrace.core.time import DAY, SECOND

ADMIN, FIRST_LIFE_US = "admin", 90 * DAY
_HEADRACE = By("headrace")


def first_token(access: Access) -> str | None:
    """The token of `admin`, who is made if there are no users yet; else None."""
    if any(user.name != LOCAL for user in access.users()):
        return None
    access.add_user(ADMIN, Role.ADMIN, _HEADRACE)
    life_s = min(FIRST_LIFE_US, access.policy.token_life_max_us) // SECOND
    asked = TokenAsked(ADMIN, "first", life=f"{life_s} seconds")
    return access.create_token(asked, _HEADRACE).secret


def begin_run(access: Access) -> str:
    """The token of this run."""
    end_run(access)
    access.add_user(LOCAL, Role.ADMIN, _HEADRACE)
    asked = TokenAsked(LOCAL, "run", life="3650 days")
    return access.create_token(asked, _HEADRACE, of_a_run=True).secret


def begin_job(access: Access) -> str:
    """The token of this run of a job, whose users are its server's."""
    access.remove_users(_HEADRACE)
    return begin_run(access)


def end_run(access: Access) -> None:
    if any(user.name == LOCAL for user in access.users()):
        access.remove_user(LOCAL, _HEADRACE)
