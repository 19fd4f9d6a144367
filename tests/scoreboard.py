"""docs/scoreboard.md: what `make prove` ran, when, at which commit, and how it ended.

It is made of the record alone (tests/recording.py), never by hand.
tests/testing/test_recording.py checks the page.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from recording import Outcome, outcomes

HEAD = """# Scoreboard

What `make prove` has run, at which commit, and how it ended: every test in its exhaustive form, on
real Spark, files, HTTP, processes and a browser. `make prove` writes this page.
"""
MEANINGS = {
    "kills": "kills of a real process at a failpoint, under ingest",
    "answers": "answers read while a project was killed again and again, each checked",
    "steps killed": "steps of one process that were killed at a failpoint",
    "stories": "stories played from beginning to end on Spark",
    "orders": "orders of the store calls of all that runs at the same time",
    "requests": "HTTP requests made out of the OpenAPI document",
    "comparisons": "values of expressions and queries compared with Spark's",
    "examples": "examples that Hypothesis made of laws",
    "patterns": "random patterns compared with an enumeration",
}


def write_scoreboard(page: Path, record: Path) -> None:
    found = sorted(outcomes(record / "outcomes.jsonl"), key=lambda outcome: outcome.test)
    seed = (record / "seed").read_text()
    parts = [HEAD, _summary(found, seed), _counted(found), _folders(found), _failed(found)]
    page.write_text("\n".join(part for part in parts if part))


def _summary(found: list[Outcome], seed: str) -> str:
    failed = sum(not outcome.passed for outcome in found)
    began = min((o.ended_at - o.seconds for o in found), default=0.0)
    ended = max((o.ended_at for o in found), default=0.0)
    rows = [
        ("commit", _commits(found)),
        ("seed", f"`HEADRACE_SEED={seed}`"),
        ("from", _time(began)),
        ("to", _time(ended)),
        ("work", f"{sum(o.seconds for o in found) / 60:,.0f} minutes, of all workers together"),
        ("tests", f"{len(found):,}: {len(found) - failed:,} passed, {failed:,} failed"),
    ]
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {said} |" for name, said in rows), ""])


def _commits(found: Iterable[Outcome]) -> str:
    """The commit; of several, how many tests have run at each."""
    ran = Counter(outcome.commit for outcome in found).most_common()
    if len(ran) == 1:
        return f"`{ran[0][0]}`"
    return ", ".join(f"`{commit}` ({tests:,} tests)" for commit, tests in ran)


def _counted(found: Iterable[Outcome]) -> str:
    """What the tests say that they have done. No failure in n kills bounds the rate of failures by
    3/n, at 95 %.
    """
    total: Counter[str] = Counter()
    for outcome in found:
        total.update(outcome.counts if outcome.passed else {})
    rows = [f"| {total[name]:,} | {said} |" for name, said in MEANINGS.items() if total[name]]
    kills = total["kills"] + total["steps killed"]
    bound = f"No failure in {kills:,} kills bounds their rate by {3 / kills:.1%} (95 %).\n"
    return "\n".join(["| passed | of |", "|---:|---|", *rows, "", bound]) if kills else ""


def _folders(found: Iterable[Outcome]) -> str:
    folders: defaultdict[str, list[Outcome]] = defaultdict(list)
    for outcome in found:
        folders["/".join(outcome.test.split("/")[:2])].append(outcome)
    rows = [
        f"| `{folder}` | {len(told):,} | {sum(not o.passed for o in told):,} "
        f"| {sum(o.seconds for o in told):,.0f} |"
        for folder, told in folders.items()
    ]
    return "\n".join(["| tests | run | failed | seconds |", "|---|---:|---:|---:|", *rows, ""])


def _failed(found: Iterable[Outcome]) -> str:
    rows = [f"- `{outcome.test}`" for outcome in found if not outcome.passed]
    return "\n".join(["## Failed", "", *rows, ""]) if rows else ""


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
