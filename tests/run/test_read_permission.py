"""What a text reads is what its caller may read, in the store and before the fence."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.access.caller import Caller, Permission
from headrace.core.errors import Forbidden, HeadraceError
from headrace.define.definitions import RuleDefinition
from headrace.define.layout import Layout
from headrace.run.definition_text import parse_kind
from headrace.run.query_service import QueryService, _names
from headrace.run.read_permission import check_definitions
from headrace.serving.opening import open_store

from .stopped import make_stopped
from .test_query_service import Told


def caller(*granted: str) -> Caller:
    allowances = tuple(Permission.of(*grant.split()) for grant in granted)
    return Caller("ada", "t", "bench", allowances)


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryService]:
    project = make_stopped(tmp_path_factory.mktemp("reading"))
    store = open_store(Layout.of(project).store)
    made = QueryService(project, store)
    yield made
    made.close()
    store.close()


@pytest.fixture
def told(questions: QueryService, monkeypatch: pytest.MonkeyPatch) -> Told:
    pool = Told()
    monkeypatch.setattr(questions, "pool", pool)
    return pool


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM hits",
        "SELECT * FROM total t JOIN HITS h ON t.n = h.n",
        "SELECT * FROM total WHERE n IN (SELECT n FROM hits)",
        "WITH hits AS (SELECT * FROM hits) SELECT * FROM hits",
        "SELECT * FROM nothing",
        "SELECT * FROM clicks",
        "SELECT * FROM total UNION SELECT * FROM clicks",
        "WITH x AS (SELECT * FROM clicks) SELECT * FROM x",
    ],
)
def test_a_foreign_relation_is_refused_like_one_that_is_not_there(
    questions: QueryService, told: Told, text: str
) -> None:
    with pytest.raises(Forbidden, match=r"ada may not read '(hits|clicks|nothing)'\n"):
        questions.answer(text, caller=caller("read view:total"))
    assert told.asked == []


def test_ones_own_relation_is_answered(questions: QueryService) -> None:
    text = "SELECT * FROM Total"
    whole = questions.answer(text)
    for granted in ("read view:total", "viewer *", "viewer job:bench"):
        assert questions.answer(text, caller=caller(granted)).rows == whole.rows
    with pytest.raises(Forbidden):
        questions.answer(text, caller=caller("read stream:total"))


def test_a_plan_is_refused_where_the_answer_would_be(questions: QueryService, told: Told) -> None:
    for text in ("SELECT * FROM hits", "SELECT * FROM clicks"):
        with pytest.raises(Forbidden, match="ada may not read"):
            questions.plan(text, caller("read view:total"))
    assert questions.plan("SELECT * FROM total", caller("read view:total")).by == "store"
    assert told.asked == []


def test_what_is_not_readable_is_not_there_for_the_store(
    questions: QueryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the names were misread here."""
    monkeypatch.setattr("headrace.run.query_service.check_reads", lambda *_: None)
    with pytest.raises(HeadraceError) as raised:
        questions.answer("SELECT * FROM hits", caller=caller("read view:total"))
    assert not isinstance(raised.value, Forbidden)
    assert questions.answer("SELECT * FROM total", caller=caller("read view:total")).rows


def test_what_is_not_readable_is_hidden_from_the_fence(
    questions: QueryService, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fence lets no query speak of a hidden relation; tests/spark/test_allowed_sql.py checks
    that.
    """
    questions.answer("SELECT 1", caller=caller("read view:total"))
    questions.answer("SELECT 1", caller=caller("read stream:clicks"))
    nothing, clicks = told.asked
    assert [relation.name for relation in nothing.relations if not relation.hidden] == []
    assert "clicks" in [relation.name for relation in clicks.relations if not relation.hidden]


def test_the_past_of_a_stream_is_not_read_behind_the_name_of_a_query(
    questions: QueryService, told: Told
) -> None:
    text = (
        "WITH clicks AS (SELECT 1 AS x) SELECT * FROM clicks TIMESTAMP AS OF '2026-01-01T00:00:00Z'"
    )
    with pytest.raises(Forbidden, match="ada may not read 'clicks'"):
        questions.answer(text, caller=caller("read view:total"))
    assert told.asked == []


def test_a_name_within_a_query_is_no_relation() -> None:
    assert _names("WITH a AS (SELECT 1 AS x) SELECT * FROM a", 1_000) == set()
    assert _names("WITH a AS (SELECT * FROM a) SELECT * FROM a", 1_000) == {"a"}


RULE = "CREATE RULE slow AS SELECT user FROM clicks WHERE ms > 1 NOTIFY STREAM alarms"


@pytest.mark.parametrize(
    ("granted", "refused"),
    [
        (["define rule:slow", "read stream:clicks", "send stream:alarms"], None),
        (["admin job:bench"], None),
        (["define rule:other", "read *", "send *"], "ada may not define rule 'slow'"),
        (["define *", "send *"], "ada may not read 'clicks'"),
        (["define *", "read *"], "ada may not send stream 'alarms'"),
    ],
)
def test_a_rule_tells_no_more_than_its_author_may_read(
    questions: QueryService, granted: list[str], refused: str | None
) -> None:
    def check() -> None:
        plan = questions.store.deployed()
        check_definitions(caller(*granted), plan, parse_kind(RULE, "rule", RuleDefinition))

    if refused is None:
        check()
        return
    with pytest.raises(Forbidden) as raised:
        check()
    assert raised.value.message == refused
