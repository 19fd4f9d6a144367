"""Who asks, and the one rule: allowed is what some grant covers, within what the token carries.

There is no other way to be allowed anything, and none to be denied what is granted but a token that
carries less. tests/access/test_caller.py checks the rule.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.access.object import EVERYTHING, Object, read_object
from headrace.access.operation import Operation, Role, operations_of
from headrace.core.errors import Forbidden


@dataclass(frozen=True, slots=True)
class Allowance:
    """Operations on an object: what a grant gives."""

    operations: frozenset[Operation]
    object: Object

    @staticmethod
    def of(may: str, on: str) -> Allowance:
        return Allowance(operations_of(may), read_object(on))

    def covers(self, operation: Operation, object: Object, job: str) -> bool:
        return operation in self.operations and self.object.covers(object, job)


@dataclass(frozen=True, slots=True)
class Caller:
    """A user, known by a token, in a job. `may` and `on` are what the token carries of the user's
    rights; empty ones carry all.
    """

    user: str
    token: str  # its id, which is no secret
    job: str
    granted: tuple[Allowance, ...]
    may: frozenset[Operation] = frozenset()
    on: tuple[Object, ...] = ()

    @property
    def narrowed(self) -> bool:
        return bool(self.may or self.on)

    @property
    def whole_job(self) -> Object:
        return Object("job", self.job)

    def allows(self, operation: Operation, object: Object) -> bool:
        if self.may and operation not in self.may:
            return False
        if self.on and not any(part.covers(object, self.job) for part in self.on):
            return False
        return any(grant.covers(operation, object, self.job) for grant in self.granted)

    def allows_somewhere(self, operation: Operation) -> bool:
        """Whether there may be an object on which it is allowed."""
        if self.may and operation not in self.may:
            return False
        return any(operation in grant.operations for grant in self.granted)

    def check(self, operation: Operation, object: Object, said: str | None = None) -> None:
        """Forbidden if it is not allowed. `said` is how the object was named by the caller, so
        that the sentence says no more of it than the caller did.
        """
        if not self.allows(operation, object):
            raise forbidden(self.user, operation, object, said)


def forbidden(user: str, operation: str, object: Object, said: str | None = None) -> Forbidden:
    shown = said or (f"{object.kind} '{object.name}'" if object.kind else "everything")
    error = Forbidden(
        f"{user} may not {operation} {shown}",
        hint="one who manages users can grant it with `headrace grant add`.",
    )
    error.object = str(object)
    return error


# Whoever has the project's files at hand may do everything to them.
OWNER = Caller("local", "", "", (Allowance.of(Role.ADMIN, str(EVERYTHING)),))
