"""What a route needs: an operation, and what it is done to.

`on` is the name of the path's parameter that names the object, or one of the words below. A route
that says nothing needs everything, so one that is forgotten is closed.
tests/api/test_needs.py asks every route as every role.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.access.operation import Operation

ANYBODY = "anybody"  # no token is needed
KNOWN = "known"  # a valid token; what it may do is the handler's question
NAMED = "named"  # what the text or the answer names, each of which the handler or service checks
JOB = "job"  # the whole job
SERVER = "server"  # what is of no job: users, tokens, grants, the audit log
# Parameters of paths, and the kind of object that each names. An alert is its rule's.
PARAMETERS = {"stream": "stream", "view": "view", "rule": "rule", "watch": "rule", "alert": "rule"}
# These are asked too often to be logged one by one.
COUNTED = frozenset({Operation.READ, Operation.SEND})


@dataclass(frozen=True, slots=True)
class Need:
    on: str = SERVER
    operation: Operation = Operation.MANAGE

    @property
    def logged(self) -> bool:
        """Whether the door logs what it lets through. Changes of users are logged where they are
        made, in one transaction with the change.
        """
        return self.on not in (ANYBODY, KNOWN, SERVER) and self.operation not in COUNTED


OPEN, FOR_KNOWN = Need(ANYBODY, Operation.READ), Need(KNOWN, Operation.READ)


def reads(on: str) -> Need:
    return Need(on, Operation.READ)
