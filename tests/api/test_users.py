"""Users, grants, tokens and the audit log on a real server, asked by `RemoteService`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headrace.access.access import Access
from headrace.access.audit_log import AuditLogFilter
from headrace.access.token import TokenRequest
from headrace.api.client import RemoteService
from headrace.api.resources.status import StatusRequest
from headrace.api.server import HttpServer
from headrace.core.errors import BadRequest, Forbidden, NotFound, Unauthenticated
from tests.access.users import TEST, token_of


@pytest.fixture
def bob(access: Access) -> Iterator[str]:
    yield token_of(access, "bob", "viewer")
    access.remove_user("bob", TEST)


def test_each_method_goes_there_and_back(remote: RemoteService, access: Access) -> None:
    book: Any = remote.access
    assert book.add_user("cid", "viewer", TEST) in book.users() == access.users()
    assert book.add_grant("cid", "send", "stream:Clicks", TEST).on == "stream:clicks"
    assert book.grants("cid") == access.grants("cid")
    assert len(book.grants()) == len(access.grants())
    book.remove_grant("cid", "send", "stream:clicks", TEST)
    assert [grant.may for grant in book.grants("cid")] == ["viewer"]
    made = book.create_token(TokenRequest("cid", "x", ["read"], ["view:v"], "1 day"), TEST)
    assert made.token in book.tokens()
    assert book.tokens("cid") == [made.token]
    assert access.authenticate_token(made.secret).user == "cid"
    assert book.revoke_token(made.token.id, TEST).revoked_at is not None
    book.remove_user("cid", TEST)
    entries = book.audit_log(AuditLogFilter(limit=6)).entries
    assert [(entry.what, entry.user) for entry in reversed(entries)] == [
        ("add_grant", "ann"), ("add_grant", "ann"), ("remove_grant", "ann"),
        ("create_token", "ann"), ("revoke_token", "ann"), ("remove_user", "ann"),
    ]  # fmt: skip
    assert all(entry.token and entry.request for entry in entries)
    with pytest.raises(NotFound):
        book.remove_user("cid", TEST)
    with pytest.raises(BadRequest):
        book.add_user("Not A Name", None, TEST)


def test_ones_own_tokens_are_ones_own_affair(server: HttpServer, access: Access, bob: str) -> None:
    with RemoteService(server.url, bob) as remote:
        made = remote.access.create_token(TokenRequest(), TEST)
        assert made.token.user == "bob"
        assert {token.user for token in remote.access.tokens()} == {"bob"}
        remote.access.revoke_token(made.token.id, TEST)
        with pytest.raises(Forbidden):
            remote.access.users()
    with RemoteService(server.url, made.secret) as remote, pytest.raises(Unauthenticated):
        remote.ask(StatusRequest())


def test_foreign_tokens_are_not(server: HttpServer, access: Access, bob: str, token: str) -> None:
    with RemoteService(server.url, bob) as remote:
        book = remote.access
        for ask in (
            lambda: book.tokens("ann"),
            lambda: book.create_token(TokenRequest("ann"), TEST),
            lambda: book.revoke_token(access.authenticate_token(token).token, TEST),
            lambda: book.revoke_token("nothing", TEST),
        ):
            with pytest.raises(Forbidden, match="may not manage these tokens"):
                ask()


def test_a_token_that_carries_less_makes_none(server: HttpServer, access: Access, bob: str) -> None:
    narrow = access.create_token(TokenRequest("bob", may=["read"]), TEST).secret
    with RemoteService(server.url, narrow) as remote:
        with pytest.raises(Forbidden):
            remote.access.create_token(TokenRequest(), TEST)
        assert remote.ask(StatusRequest()).name == "shop"
