"""Rules and alerts of a store: what can be asked, and what can be changed without another plan."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from headrace.core.errors import BadDefinition, BadRequest, NotFound
from headrace.define.definitions import RuleDefinition
from headrace.run.added_definitions import added_rules, with_rules
from headrace.run.rule_service import LocalRuleService
from headrace.serving.alerts import AlertFilter, Alerts
from headrace.serving.outbox import Queue
from headrace.serving.rules import keep_rules
from tests.serving.bench import Click
from tests.serving.rule_bench import SELECT, SLOW, RuleBench, rule_project

OTHER = f"CREATE RULE other AS {SELECT} SEVERITY 'low'"


class RuleDeployer:
    """Keeps what it is given, as a stopped project does."""

    def __init__(self, bench: RuleBench) -> None:
        self.bench = bench

    def become_writer(self) -> None:
        """The bench is the writer."""

    def redeploy(self, added: Mapping[str, RuleDefinition], who: str) -> None:
        with_rules(rule_project(Path(), SLOW), added.values())
        with self.bench.store.write() as db:
            keep_rules(db, {n: r.text for n, r in added.items()}, who, self.bench.clock())


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[RuleBench]:
    made = RuleBench(tmp_path / "serving.db", rules=f"{SLOW} NOTIFY FILE 'a.ndjson'")
    made.build()
    made.look()
    made.send(Click("/a", "ann", 5, 99), Click("/b", "bob", 6, 98))
    made.look()
    yield made
    made.close()


@pytest.fixture
def book(bench: RuleBench) -> LocalRuleService:
    return LocalRuleService(
        rule_project(Path(), SLOW), bench.store, RuleDeployer(bench), threading.Lock()
    )


def test_rules_say_their_state_and_numbers(book: LocalRuleService) -> None:
    (rule,) = book.rules()
    assert rule == book.rule("SLOW")
    assert (rule.name, rule.version, rule.state, rule.severity) == ("slow", 1, "enabled", "medium")
    assert (rule.kept, rule.changed_by) == (False, "ann")
    assert (rule.numbers.alerts, rule.numbers.open, rule.numbers.waiting) == (2, 2, 2)
    with pytest.raises(NotFound) as unknown:
        book.rule("fast")
    assert (unknown.value.message, unknown.value.hint) == (
        "there is no rule 'fast'", "available rules: slow.",
    )  # fmt: skip


def test_each_change_is_a_version_with_who_made_it(book: LocalRuleService) -> None:
    assert book.switch("slow", "disabled", "bob").version == 2
    assert book.switch("slow", "disabled", "cid").version == 2, "it is so already"
    book.switch("slow", "enabled", "dan")
    assert [(v.version, v.state, v.changed_by) for v in book.history("slow")] == [
        (3, "enabled", "dan"), (2, "disabled", "bob"), (1, "enabled", "ann"),
    ]  # fmt: skip


def test_rules_are_added_changed_and_removed(book: LocalRuleService) -> None:
    assert [(r.name, r.version, r.kept) for r in book.add(OTHER, "bob")] == [("other", 1, True)]
    (changed,) = book.add(OTHER.replace("low", "high"), "cid")
    assert (changed.version, changed.severity) == (2, "high")
    assert list(added_rules(book.store)) == ["other"]
    gone = book.remove("other", "dan")
    assert (gone.version, gone.state, gone.changed_by) == (3, "removed", "dan")
    assert [rule.name for rule in book.rules()] == ["slow"]
    assert len(book.history("other")) == 3
    assert book.add(OTHER, "eve")[0].version == 4


def test_rule_of_the_files_is_neither_replaced_nor_removed(book: LocalRuleService) -> None:
    with pytest.raises(BadDefinition) as refused:
        book.add(SLOW, "bob")
    assert refused.value.message == (
        "duplicate name 'slow': it is defined in the project's files, and a rule of that name was "
        "added at run time"
    )
    with pytest.raises(BadDefinition) as refused:
        book.remove("slow", "bob")
    assert refused.value.message == (
        "rule 'slow' is defined in the project's files and must be removed there"
    )


@pytest.mark.parametrize("text", ["CREATE STREAM s (x INT)", f"{OTHER}; CREATE STREAM s (x INT)"])
def test_only_rules_can_be_added(text: str, book: LocalRuleService) -> None:
    with pytest.raises(BadDefinition, match="only CREATE RULE statements are accepted"):
        book.add(text, "bob")


def test_alert_is_acknowledged_with_a_note(book: LocalRuleService, bench: RuleBench) -> None:
    id = bench.alerts()[0].id
    seen = book.acknowledge(id[:10], "bob", "restarted it")
    assert (seen.state, seen.acknowledged_by, seen.note) == ("acknowledged", "bob", "restarted it")
    assert book.alert(id) == seen
    assert [a.id for a in book.alerts(AlertFilter(state="acknowledged")).alerts] == [id]
    assert book.alerts(AlertFilter(rule="nothing")) == Alerts([], 0, [])
    with pytest.raises(NotFound, match="there is no alert 'zz'"):
        book.alert("zz")
    with pytest.raises(NotFound, match="more than one alert id begins with ''"):
        book.alert("")


def test_rule_is_muted_for_a_time_or_for_some_values(
    book: LocalRuleService, bench: RuleBench
) -> None:
    muted = book.mute("slow", "1h", {"user": "ann"}, "bob")
    assert (muted.rule, muted.keys, muted.until) == (
        "slow", {"user": "ann"}, "2026-01-01T02:00:00Z",
    )  # fmt: skip
    bench.send(Click("/a", "ann", 7, 99), Click("/a", "bob", 8, 99))
    bench.look()
    assert [a.state for a in bench.alerts()] == ["open", "open", "muted", "open"]
    assert book.rule("slow").mutes == [muted]
    for length, keys, sentence in (
        ("soon", {}, "'soon' is not a duration such as 1h"),
        ("99999999999999 days", {}, "'99999999999999 days' is not a duration such as 1h"),
        ("0s", {}, "the duration of a mute must be positive"),
        ("1h", {"country": "x"}, "'country' is not a column of rule 'slow'"),
    ):
        with pytest.raises(BadRequest, match=sentence):
            book.mute("slow", length, keys, "bob")


def test_mute_is_taken_back_by_its_values_or_with_all_others(
    book: LocalRuleService, bench: RuleBench
) -> None:
    ann, whole = book.mute("slow", "1h", {"user": "ann"}, "bob"), book.mute("slow", "2h", {}, "bob")
    with pytest.raises(NotFound) as refused:
        book.unmute("slow", {"user": "cid"})
    assert (refused.value.message, refused.value.hint) == (
        "rule 'slow' is not muted for these keys", "active mutes: user=ann; the whole rule.",
    )  # fmt: skip
    assert book.unmute("slow", {"user": "ann"}) == [ann]
    assert book.rule("slow").mutes == [whole]
    book.mute("slow", "1h", {"user": "ann"}, "bob")
    assert len(book.unmute("SLOW", {})) == 2
    bench.send(Click("/a", "ann", 7, 99))
    bench.look()
    assert [a.state for a in bench.alerts()] == ["open"] * 3


def fail(bench: RuleBench) -> None:
    """Give up on all that waits."""
    queue = Queue(bench.store.db, bench.plan.rules[0].destinations[0].name)
    queue.failed(queue.due(bench.clock(), 10), "it is dead", bench.clock())


def test_failed_notifications_are_tried_again(book: LocalRuleService, bench: RuleBench) -> None:
    first, second = (alert.id for alert in bench.alerts())
    assert book.retry() == 0
    fail(bench)
    assert book.retry(rule="other") == 0
    assert book.retry(alert=first[:10]) == 1
    assert [alert[0] for alert in states(book, first, second)] == ["waiting", "failed"]
    assert states(book, first)[0][1:] == (0, None), "with all its attempts"
    assert book.retry(rule="SLOW") == 1
    queue = Queue(bench.store.db, bench.plan.rules[0].destinations[0].name)
    assert [notice.key for notice in queue.due(bench.clock(), 10)] == [first, second]
    with pytest.raises(NotFound, match="there is no alert 'zz'"):
        book.retry(alert="zz")


def states(book: LocalRuleService, *ids: str) -> list[tuple[str, int, str | None]]:
    found = [book.alert(id).deliveries[0] for id in ids]
    return [(delivery.state, delivery.attempts, delivery.reason) for delivery in found]


def test_what_no_rule_names_any_more_is_not_tried_again(
    book: LocalRuleService, bench: RuleBench
) -> None:
    fail(bench)
    bench.redeploy(f"{SLOW} NOTIFY FILE 'b.ndjson'")
    assert book.retry() == 0


def test_a_rule_that_is_defined_twice_in_one_text_is_refused(book: LocalRuleService) -> None:
    with pytest.raises(BadDefinition) as refused:
        book.add(f"{OTHER}; {OTHER.replace('low', 'high')}", "bob")
    assert refused.value.message == "'other' is defined twice"
    assert added_rules(book.store) == {}
