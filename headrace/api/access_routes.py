"""The routes of sessions, users, tokens, grants and the audit log, of a project and of a server of
jobs. tests/api/test_users.py and tests/api/test_sessions.py ask each.
"""

from __future__ import annotations

from typing import Literal

from headrace.access.audit_log import Verified
from headrace.access.operation import Operation
from headrace.access.token import NewToken, Token, TokenAsked
from headrace.access.user import Grant, User
from headrace.api import sessions, users
from headrace.api.access_shapes import (
    AuditLog,
    Done,
    GrantQuestion,
    Grants,
    SessionQuestion,
    SessionReport,
    Tokens,
    UserQuestion,
    Users,
)
from headrace.api.body import JSON
from headrace.api.handlers import Reception
from headrace.api.needs import FOR_KNOWN, OPEN, SERVER, Need
from headrace.api.route import LIMIT, BodyKind, Parameter, Route

_TOKEN = Parameter("token", "path", str, "id of a token")
_OF_USER = Parameter("user", "query", str, "only those of this user")
_ENTRIES = (
    _OF_USER, LIMIT,
    Parameter("before", "query", int, "only entries older than the one with this number"),
    Parameter("after", "query", int, "only newer entries than the one with this number, in order"),
    Parameter("decision", "query", Literal["allowed", "refused"], "only those so decided"),
    Parameter("what", "query", str, "only those of this name of a route"),
    Parameter("find", "query", str, "only those in which each of these words stands"),
)  # fmt: skip
_MANAGES = Need(SERVER, Operation.MANAGE)

ACCESS_ROUTES: tuple[Route[Reception], ...] = (
    Route(
        "GET", "/v1/session", "session", "Who one is, and what one may do.",
        sessions.session, SessionReport,
        needs=FOR_KNOWN,
    ),
    Route(
        "POST", "/v1/session", "open_session",
        "Open a session of a browser, with a token or the code of the link that a run prints.",
        sessions.open_session, SessionReport, bodies=(BodyKind(JSON, SessionQuestion),),
        needs=OPEN,
    ),
    Route(
        "POST", "/v1/session/end", "end_session", "End the session of a browser.",
        sessions.end_session, Done,
        needs=FOR_KNOWN,
    ),
    Route(
        "GET", "/v1/users", "users", "All users.", users.users, Users,
        needs=_MANAGES,
    ),
    Route(
        "POST", "/v1/users", "add_user",
        "Add a user, who may do nothing, or has a role on everything.",
        users.add_user, User, bodies=(BodyKind(JSON, UserQuestion),),
        needs=_MANAGES,
    ),
    Route(
        "POST", "/v1/users/{user}/remove", "remove_user",
        "Remove a user, with all tokens, sessions and grants.",
        users.remove_user, Done, parameters=(Parameter("user", "path", str, "name of a user"),),
        needs=_MANAGES,
    ),
    Route(
        "GET", "/v1/tokens", "tokens",
        "The tokens of the one who asks; for those who manage users, all.",
        users.tokens, Tokens, parameters=(_OF_USER,),
        needs=FOR_KNOWN,
    ),
    Route(
        "POST", "/v1/tokens", "create_token", "Make a token. Its secret is told this once.",
        users.create_token, NewToken, bodies=(BodyKind(JSON, TokenAsked),), body_required=False,
        needs=FOR_KNOWN,
    ),
    Route(
        "POST", "/v1/tokens/{token}/revoke", "revoke_token",
        "Let a token, and the sessions that it opened, be valid no more.",
        users.revoke_token, Token, parameters=(_TOKEN,),
        needs=FOR_KNOWN,
    ),
    Route(
        "GET", "/v1/grants", "grants", "Who may do what on which object.",
        users.grants, Grants, parameters=(_OF_USER,),
        needs=_MANAGES,
    ),
    Route(
        "POST", "/v1/grants", "add_grant",
        "Let a user do something: a role or one operation, on an object.",
        users.add_grant, Grant, bodies=(BodyKind(JSON, GrantQuestion),),
        needs=_MANAGES,
    ),
    Route(
        "POST", "/v1/grants/remove", "remove_grant", "Take a grant back.",
        users.remove_grant, Done, bodies=(BodyKind(JSON, GrantQuestion),),
        needs=_MANAGES,
    ),
    Route(
        "GET", "/v1/audit-log", "audit_log", "The newest changes and refusals.",
        users.audit_log, AuditLog, parameters=_ENTRIES,
        needs=Need(SERVER, Operation.AUDIT),
    ),
    Route(
        "GET", "/v1/audit-log/verify", "verify_audit_log",
        "Whether every entry of the audit log is what was appended.",
        users.verify_audit_log, Verified,
        needs=Need(SERVER, Operation.AUDIT),
    ),
)  # fmt: skip
