"""Roles are sets of operations, and docs/security.md says the same."""

from __future__ import annotations

import pytest

from headrace.access.operation import OPERATIONS, Operation, Role, operations_of
from headrace.core.errors import BadRequest
from tests.docs.pages import code, codes, table


def test_the_page_has_each_role_with_its_operations() -> None:
    said = {code(role): set(codes(may)) for role, may, _ in table("docs/security.md", "role")}
    assert OPERATIONS[Role.ADMIN] == set(Operation)
    written_out = {role: may for role, may in OPERATIONS.items() if role is not Role.ADMIN}
    assert said == written_out | {Role.ADMIN: set()}, "of admin the page says: everything"


def test_the_page_has_each_operation() -> None:
    assert [code(row[0]) for row in table("docs/security.md", "operation")] == list(Operation)


def test_no_word_is_both_a_role_and_an_operation() -> None:
    assert not {*Role} & {*Operation}


def test_other_words_are_refused() -> None:
    with pytest.raises(BadRequest, match="'root' is neither a role nor an operation"):
        operations_of("root")
