"""The permission that a route needs: an operation on an object.

`on` is the path parameter that names the object, or one of the constants below. The default needs
the permission to manage users, so a route without a declaration is closed.
tests/api/test_needs.py requests every route as every role.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.access.operation import Operation

PUBLIC = "public"  # no token is needed
AUTHENTICATED = "authenticated"  # a valid token; the handler checks permissions
NAMED = "named"  # objects in the request or response, which the handler or service checks
JOB = "job"  # the whole job
SERVER = "server"  # not part of a job: users, tokens, grants, the audit log
# Path parameters, and the kind of object that each names. An alert has the permissions of its rule.
PARAMETERS = {"stream": "stream", "view": "view", "rule": "rule", "watch": "rule", "alert": "rule"}
# Too frequent to be logged one by one; they are counted.
COUNTED = frozenset({Operation.READ, Operation.SEND})


@dataclass(frozen=True, slots=True)
class Need:
    on: str = SERVER
    operation: Operation = Operation.MANAGE

    @property
    def logged(self) -> bool:
        """Whether allowed requests are logged. Changes of users are logged with the change itself,
        in one transaction.
        """
        return self.on not in (PUBLIC, AUTHENTICATED, SERVER) and self.operation not in COUNTED


OPEN, ANY_USER = Need(PUBLIC, Operation.READ), Need(AUTHENTICATED, Operation.READ)


def reads(on: str) -> Need:
    return Need(on, Operation.READ)
