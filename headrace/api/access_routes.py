"""The routes of sessions, users, tokens, grants and the audit log, of a project and of a server of
jobs. tests/api/test_users.py and tests/api/test_sessions.py request each.
"""

from __future__ import annotations

from typing import Literal

from headrace.access.audit_log import AuditLog, AuditLogVerification
from headrace.access.operation import Operation
from headrace.access.token import NewToken, Token, TokenRequest
from headrace.access.user import Grant, User
from headrace.api import sessions, users
from headrace.api.access_shapes import (
    GrantList,
    GrantRequest,
    OkResponse,
    SessionReport,
    SessionRequest,
    TokenList,
    UserList,
    UserRequest,
)
from headrace.api.body import JSON
from headrace.api.handlers import AccessApi
from headrace.api.needs import ANY_USER, OPEN, SERVER, Need
from headrace.api.parameter import Parameter
from headrace.api.route import LIMIT, BodyKind, Route

_TOKEN = Parameter("token", "path", str, "id of a token")
_OF_USER = Parameter("user", "query", str, "only those of this user")
_ENTRIES = (
    _OF_USER, LIMIT,
    Parameter("before", "query", int, "only entries older than the one with this number"),
    Parameter("after", "query", int, "only newer entries than the one with this number, in order"),
    Parameter("decision", "query", Literal["allowed", "refused"], "only entries so decided"),
    Parameter("what", "query", str, "only entries of this route, by its name"),
    Parameter("find", "query", str, "only entries that contain each of these words"),
)  # fmt: skip
_MANAGES = Need(SERVER, Operation.MANAGE)

ACCESS_ROUTES: tuple[Route[AccessApi], ...] = (
    Route(
        "GET", "/v1/session", "session", "The caller and their permissions.",
        sessions.session, SessionReport,
        needs=ANY_USER,
    ),
    Route(
        "POST", "/v1/session", "open_session",
        "Open a session of a browser, with a token or the code of the link that a run prints.",
        sessions.open_session, SessionReport, bodies=(BodyKind(JSON, SessionRequest),),
        needs=OPEN,
    ),
    Route(
        "POST", "/v1/session/end", "end_session", "End the session of a browser.",
        sessions.end_session, OkResponse,
        needs=ANY_USER,
    ),
    Route(
        "GET", "/v1/users", "users", "All users.", users.users, UserList,
        needs=_MANAGES,
    ),
    Route(
        "POST", "/v1/users", "add_user",
        "Add a user, without permissions or with a role on everything.",
        users.add_user, User, bodies=(BodyKind(JSON, UserRequest),),
        needs=_MANAGES,
    ),
    Route(
        "POST", "/v1/users/{user}/remove", "remove_user",
        "Remove a user, with all tokens, sessions and grants.",
        users.remove_user, OkResponse,
        parameters=(Parameter("user", "path", str, "name of a user"),),
        needs=_MANAGES,
    ),
    Route(
        "GET", "/v1/tokens", "tokens",
        "The tokens of the caller; for user managers, all tokens.",
        users.tokens, TokenList, parameters=(_OF_USER,),
        needs=ANY_USER,
    ),
    Route(
        "POST", "/v1/tokens", "create_token", "Create a token. Its secret is shown this once.",
        users.create_token, NewToken, bodies=(BodyKind(JSON, TokenRequest),), body_required=False,
        needs=ANY_USER,
    ),
    Route(
        "POST", "/v1/tokens/{token}/revoke", "revoke_token",
        "Revoke a token and the sessions that it opened.",
        users.revoke_token, Token, parameters=(_TOKEN,),
        needs=ANY_USER,
    ),
    Route(
        "GET", "/v1/grants", "grants", "Which user has which role or operation on which object.",
        users.grants, GrantList, parameters=(_OF_USER,),
        needs=_MANAGES,
    ),
    Route(
        "POST", "/v1/grants", "add_grant",
        "Grant a user a role or one operation on an object.",
        users.add_grant, Grant, bodies=(BodyKind(JSON, GrantRequest),),
        needs=_MANAGES,
    ),
    Route(
        "POST", "/v1/grants/remove", "remove_grant", "Remove a grant.",
        users.remove_grant, OkResponse, bodies=(BodyKind(JSON, GrantRequest),),
        needs=_MANAGES,
    ),
    Route(
        "GET", "/v1/audit-log", "audit_log", "The newest changes and refusals.",
        users.audit_log, AuditLog, parameters=_ENTRIES,
        needs=Need(SERVER, Operation.AUDIT),
    ),
    Route(
        "GET", "/v1/audit-log/verify", "verify_audit_log",
        "Whether every entry of the audit log is unchanged since it was appended.",
        users.verify_audit_log, AuditLogVerification,
        needs=Need(SERVER, Operation.AUDIT),
    ),
)  # fmt: skip
