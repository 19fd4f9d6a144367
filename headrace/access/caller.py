"""The caller of a request, and the one rule of authorization: an operation is allowed if a grant
covers it and the token's scope includes it.

Nothing else allows an operation, and nothing else denies one. tests/access/test_caller.py checks
the rule.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.access.object import EVERYTHING, Object, read_object
from headrace.access.operation import Operation, Role, operations_of
from headrace.core.errors import Forbidden


@dataclass(frozen=True, slots=True)
class Permission:
    """Operations on an object, as a grant gives them."""

    operations: frozenset[Operation]
    object: Object

    @staticmethod
    def of(may: str, on: str) -> Permission:
        return Permission(operations_of(may), read_object(on))

    def covers(self, operation: Operation, object: Object, job: str) -> bool:
        return operation in self.operations and self.object.covers(object, job)


@dataclass(frozen=True, slots=True)
class Caller:
    """A user, authenticated by a token, in a job. `may` and `on` are the token's scope; empty ones
    include all of the user's permissions.
    """

    user: str
    token: str  # its id, which is not secret
    job: str
    granted: tuple[Permission, ...]
    may: frozenset[Operation] = frozenset()
    on: tuple[Object, ...] = ()

    @property
    def scoped(self) -> bool:
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

    def check(self, operation: Operation, object: Object, label: str | None = None) -> None:
        """Forbidden if it is not allowed. `label` is the caller's own name for the object, so that
        the message reveals nothing that the caller did not send.
        """
        if not self.allows(operation, object):
            raise forbidden(self.user, operation, object, label)


def forbidden(user: str, operation: str, object: Object, label: str | None = None) -> Forbidden:
    shown = label or (f"{object.kind} '{object.name}'" if object.kind else "everything")
    error = Forbidden(
        f"{user} may not {operation} {shown}",
        hint="a user manager can grant it with `headrace grant add`.",
    )
    error.object = str(object)
    return error


# A process that can write the project's files may do everything to them.
OWNER = Caller("local", "", "", (Permission.of(Role.ADMIN, str(EVERYTHING)),))
