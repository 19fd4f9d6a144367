"""Operations, and roles, which are named sets of operations.

Authorization checks operations only, never roles. tests/access/test_operation.py compares both with
the tables in docs/security.md.
"""

from __future__ import annotations

from enum import StrEnum

from headrace.core.errors import BadRequest


class Operation(StrEnum):
    READ = "read"  # answers, events, rules, alerts and status
    SEND = "send"  # events
    DEFINE = "define"  # rules and watches
    SUBMIT = "submit"  # jobs
    REBUILD = "rebuild"
    CANCEL = "cancel"
    RESTART = "restart"
    MUTE = "mute"
    ACKNOWLEDGE = "acknowledge"
    AUDIT = "audit"  # answers, and reading the audit log
    MANAGE = "manage"  # users, their tokens and grants


class Role(StrEnum):
    VIEWER = "viewer"
    SENDER = "sender"
    DEVELOPER = "developer"
    OPERATOR = "operator"
    ADMIN = "admin"


OPERATIONS: dict[Role, frozenset[Operation]] = {
    Role.VIEWER: frozenset({Operation.READ}),
    Role.SENDER: frozenset({Operation.SEND}),
    Role.DEVELOPER: frozenset({Operation.DEFINE, Operation.SUBMIT, Operation.READ}),
    Role.OPERATOR: frozenset(
        {
            Operation.REBUILD,
            Operation.CANCEL,
            Operation.RESTART,
            Operation.MUTE,
            Operation.ACKNOWLEDGE,
            Operation.AUDIT,
            Operation.READ,
        }
    ),
    Role.ADMIN: frozenset(Operation),
}
WORDS = (*Role, *Operation)


def operations_of(word: str) -> frozenset[Operation]:
    """The operations of a role, or the one operation of that name.

    >>> sorted(operations_of("developer")), sorted(operations_of("send"))
    ([<Operation.DEFINE: 'define'>, <Operation.READ: 'read'>, <Operation.SUBMIT: 'submit'>], \
[<Operation.SEND: 'send'>])
    """
    if word in OPERATIONS:
        return OPERATIONS[Role(word)]
    if word in Operation.__members__.values():
        return frozenset({Operation(word)})
    raise BadRequest(
        f"'{word[:40]}' is neither a role nor an operation",
        hint=f"available roles and operations: {', '.join(WORDS)}.",
    )
