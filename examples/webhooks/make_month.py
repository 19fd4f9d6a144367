"""A month of webhooks, of a code forge and of a payment provider, as a user would receive them.

    python make_month.py                                       # 20,000 events into inbox/
    python make_month.py --seed 7 --events 1000 --inbox /tmp/inbox

The same arguments make the same bytes. Some events come late, some twice, some are broken. What was
made is printed, and Headrace finds exactly that: tests/run/test_webhooks.py. It needs Python alone.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

Body = dict[str, Any]

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
# As the watermarks of webhooks.sql have it.
DELAY_MS = HOUR_MS

LATE, REPEATED, BROKEN = 0.02, 0.02, 0.01


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file. Its kind is what Headrace makes of it: event, duplicate or dead letter."""

    arrives_ms: int
    at_ms: int
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Month:
    begins_ms: int
    ends_ms: int

    @classmethod
    def of(cls, text: str) -> Month:
        """
        >>> (Month.of("2025-10").ends_ms - Month.of("2025-10").begins_ms) // DAY_MS
        31
        """
        first = datetime.strptime(text, "%Y-%m").replace(tzinfo=UTC)
        after = (first + timedelta(days=31)).replace(day=1)
        return cls(int(first.timestamp()) * 1000, int(after.timestamp()) * 1000)

    def at(self, rng: Random) -> int:
        return rng.randrange(self.begins_ms, self.ends_ms)


# The code forge.

PEOPLE = ("ada", "grace", "alan", "edsger", "barbara", "donald", "frances", "ken")
REPOSITORIES = {"api": "python", "console": "typescript", "engine": "rust", "infra": "hcl"}
LABELS = {"bug": "d73a4a", "feature": "a2eeef", "docs": "0075ca", "urgent": "b60205"}
PATHS = ("src/main", "src/model", "tests/test_main", "README", "docs/intro")


def of_forge(rng: Random, kind: str, at_ms: int, repository: str, **said: Any) -> Body:
    person = rng.choice(PEOPLE)
    return {
        "delivery": f"{rng.getrandbits(64):016x}",
        "event": kind,
        "timestamp": at_ms,
        "actor": {"id": PEOPLE.index(person) + 1, "login": person, "type": "User"},
        "repository": {
            "name": repository,
            "owner": {"login": "acme", "plan": {"seats": 50}},
            "private": repository == "infra",
            "properties": {"language": REPOSITORIES[repository], "tier": "1"},
        },
        **said,
        "installation": {"id": 7},
    }


def commit(rng: Random) -> Body:
    person = rng.choice(PEOPLE)
    return {
        "sha": f"{rng.getrandbits(160):040x}",
        "author": {"login": person, "email": f"{person}@acme.example"},
        "message": rng.choice(("Fix it", "Add a test", "Say what it does")),
        "files": rng.sample(PATHS, rng.randint(1, 3)),
    }


def labels(rng: Random) -> list[Body]:
    names = rng.sample(list(LABELS), rng.choice((0, 1, 1, 2)))
    return [{"name": name, "color": LABELS[name]} for name in names]


def forge_events(rng: Random, month: Month) -> Iterator[Body]:
    """Stories without an end: a push, an issue, or a pull request with all that follows it."""
    number = 0
    while True:
        at, repository = month.at(rng), rng.choice(list(REPOSITORIES))
        story = rng.random()
        if story < 0.5:
            commits = [commit(rng) for _ in range(rng.randint(1, 4))]
            yield of_forge(
                rng, "push", at, repository, ref="refs/heads/main", commits=commits, forced=False
            )
            continue
        number += 1
        subject = {"number": number, "title": f"Number {number}", "labels": labels(rng)}
        if story < 0.7:
            yield of_forge(rng, "issue", at, repository, action="opened", issue=subject)
        else:
            subject |= {"additions": rng.randrange(1, 400), "deletions": rng.randrange(200)}
            yield from pull_request(rng, at, repository, subject)


def pull_request(rng: Random, at: int, repository: str, subject: Body) -> Iterator[Body]:
    yield of_forge(
        rng, "pull_request", at, repository, action="opened", pull_request=subject | {"draft": True}
    )
    for _ in range(rng.randrange(3)):
        at += int(rng.expovariate(1 / (6 * HOUR_MS))) + 1
        review = {"state": rng.choice(("approved", "approved", "changes_requested"))}
        number = {"number": subject["number"]}
        yield of_forge(
            rng,
            "review",
            at,
            repository,
            action="submitted",
            review=review | {"id": rng.getrandbits(32)},
            pull_request=number,
        )
    at += int(rng.expovariate(1 / (20 * HOUR_MS))) + 1
    end = rng.choice(("merged", "merged", "merged", "closed"))
    yield of_forge(rng, "pull_request", at, repository, action=end, pull_request=subject)


# The payment provider.

# How many digits a currency has after the point, and what a price of 1.00 euro is in it.
DIGITS = {"EUR": 2, "USD": 2, "JPY": 0, "KWD": 3}
RATES = {"EUR": Decimal(1), "USD": Decimal("1.17"), "JPY": Decimal(176), "KWD": Decimal("0.357")}
PRICES = {
    "hat": Decimal("19.90"),
    "shoes": Decimal("89.95"),
    "socks": Decimal("4.99"),
    "coat": Decimal("249.00"),
}
COUNTRIES = {"EUR": ("DE", "FR", "ES"), "USD": ("US",), "JPY": ("JP",), "KWD": ("KW",)}
CUSTOMERS = 200


@dataclass(frozen=True, slots=True)
class Customer:
    id: str
    currency: str
    country: str
    plan: str

    def money(self, euros: Decimal) -> Decimal:
        return (euros * RATES[self.currency]).quantize(Decimal(1).scaleb(-DIGITS[self.currency]))


def customers(rng: Random) -> list[Customer]:
    made = []
    for number in range(CUSTOMERS):
        (currency,) = rng.choices(list(DIGITS), (5, 3, 1, 1))
        country = rng.choice(COUNTRIES[currency])
        made.append(
            Customer(f"cus_{number:04}", currency, country, rng.choice(("free", "pro", "team")))
        )
    return made


def of_provider(rng: Random, kind: str, at_ms: int, customer: Customer, amount: Decimal) -> Body:
    """The provider writes amounts as texts and in minor units, and leaves out euros at times."""
    body: Body = {
        "id": f"evt_{rng.getrandbits(64):016x}",
        "type": f"charge.{kind}",
        "created": at_ms // 1000,
        "amount": str(amount),
        "amount_minor": int(amount.scaleb(DIGITS[customer.currency])),
        "currency": customer.currency,
        "customer": {
            "id": customer.id,
            "country": customer.country,
            "email": f"{customer.id}@example.com",
            "tags": {"plan": customer.plan},
        },
        "livemode": True,
        "api_version": "2025-09-30",
    }
    if customer.currency == "EUR" and rng.random() < 0.1:
        del body["currency"]
    return body


def payment_events(rng: Random, month: Month) -> Iterator[Body]:
    """Stories without an end: a charge that succeeds, and may be refunded, or one that fails, and
    may be tried again at once.
    """
    everybody = customers(rng)
    while True:
        at, customer = month.at(rng), rng.choice(everybody)
        outcome = rng.random()
        if outcome < 0.88:
            yield from succeeded(rng, at, customer)
            continue
        tries = rng.randint(3, 5) if outcome > 0.995 else 1
        for attempt in range(tries):
            yield failed(rng, at + attempt * 4 * MINUTE_MS, customer)


def basket(rng: Random, customer: Customer) -> tuple[Decimal, Body]:
    skus = rng.sample(list(PRICES), rng.randint(1, 3))
    prices = [customer.money(PRICES[sku]) for sku in skus]
    quantities = [rng.randint(1, 3) for _ in skus]
    bought = list(zip(skus, quantities, prices, strict=True))
    items = [{"sku": s, "quantity": q, "price": str(p), "taxed": True} for s, q, p in bought]
    amount = sum((p * q for _, q, p in bought), Decimal())
    return amount, {"items": items, "metadata": {"channel": rng.choice(("web", "app", "phone"))}}


def method(rng: Random) -> Body:
    if rng.random() < 0.2:
        return {"type": "transfer", "bank": {"country": "DE"}}
    return {"type": "card", "card": {"brand": rng.choice(("visa", "amex")), "last4": "4242"}}


def succeeded(rng: Random, at: int, customer: Customer) -> Iterator[Body]:
    amount, bought = basket(rng, customer)
    # The fee is a JSON number, such as 0.8271, whose digits are what counts.
    fee = float((amount * Decimal("0.029")).quantize(Decimal("0.0001")))
    charge = of_provider(rng, "succeeded", at, customer, amount)
    data = {"method": method(rng), "risk": {"score": rng.randrange(100)}}
    yield charge | bought | {"fee": fee, "data": data}
    if rng.random() < 0.06:
        at += rng.randrange(HOUR_MS, 10 * DAY_MS)
        back = of_provider(rng, "refunded", at, customer, amount)
        reason = rng.choice(("requested_by_customer", "duplicate", "fraudulent"))
        yield back | {"data": {"charge": charge["id"], "reason": reason}}


def failed(rng: Random, at: int, customer: Customer) -> Body:
    amount, bought = basket(rng, customer)
    code = rng.choice(("card_declined", "expired_card", "insufficient_funds"))
    data = {"method": method(rng), "failure": {"code": code, "advice": ["try_again", None]}}
    return of_provider(rng, "failed", at, customer, amount) | bought | {"data": data}


# What goes wrong on the way. Each of these is a dead letter.


def too_many_digits(body: Body) -> str:
    return written(body | {"amount": f"{Decimal(body['amount']):.2f}12"})


def wrong_type(body: Body) -> str:
    return written(body | {"amount_minor": str(body["amount_minor"])})


def wrong_actor(body: Body) -> str:
    return written(body | {"actor": body["actor"] | {"id": body["actor"]["login"]}})


def without(name: str) -> Callable[[Body], str]:
    return lambda body: written({k: v for k, v in body.items() if k != name})


def no_epoch(name: str) -> Callable[[Body], str]:
    return lambda body: written(body | {name: "yesterday"})


def cut_off(body: Body) -> str:
    text = written(body)
    return text[: len(text) // 2]


FORGE_FAULTS = (wrong_actor, without("repository"), no_epoch("timestamp"), cut_off)
PAYMENT_FAULTS = (
    too_many_digits,
    wrong_type,
    without("customer"),
    no_epoch("created"),
    cut_off,
)


def written(body: Body) -> str:
    return json.dumps(body, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Source:
    """A stream of webhooks.sql: its events, the field with their id, and what breaks them."""

    events: Callable[[Random, Month], Iterator[Body]]
    id: str
    faults: tuple[Callable[[Body], str], ...]


SOURCES = {
    "forge": Source(forge_events, "delivery", FORGE_FAULTS),
    "payments": Source(payment_events, "id", PAYMENT_FAULTS),
}


def make_month(
    seed: int = 1, events: int = 20_000, month: str = "2025-10"
) -> dict[str, list[Line]]:
    """The lines of each stream, in the order in which they arrive."""
    made, of = {}, Month.of(month)
    for name, source in SOURCES.items():
        rng = Random(f"{seed} {name}")
        lines = list(lines_of(source, rng, of, events // len(SOURCES)))
        made[name] = sorted(lines, key=lambda line: line.arrives_ms)
    return made


def lines_of(source: Source, rng: Random, month: Month, events: int) -> Iterator[Line]:
    """So many events, and beside them what is sent again and what is broken."""
    bodies = source.events(rng, month)
    while events:
        body = next(bodies)
        at = body["timestamp"] if "timestamp" in body else body["created"] * 1000
        if at >= month.ends_ms:
            continue
        events -= 1
        late = rng.random() < LATE
        arrives = (
            at + rng.randrange(2 * HOUR_MS, 48 * HOUR_MS) if late else at + rng.randrange(5_000)
        )
        yield Line(arrives, at, "event", written(body))
        if rng.random() < REPEATED:
            yield Line(arrives + rng.randrange(1, DAY_MS), at, "duplicate", written(body))
        if rng.random() < BROKEN:
            # The same id with other content is a conflict; with another id it is another event.
            conflict = written(body | {"retried": True})
            another = body | {source.id: f"broken_{rng.getrandbits(64):016x}"}
            text = conflict if rng.random() < 0.2 else rng.choice(source.faults)(another)
            yield Line(arrives + 1, at, "dead letter", text)


def summary(lines: list[Line]) -> dict[str, int]:
    """What Headrace counts in a stream of one partition that has received these lines."""
    kinds = Counter(line.kind for line in lines)
    late, newest = 0, 0
    for line in lines:
        if line.kind == "event":
            late += line.at_ms < newest - DELAY_MS
            newest = max(newest, line.at_ms)
    return {
        "accepted": len(lines),
        "events": kinds["event"],
        "duplicates": kinds["duplicate"],
        "dead_letters": kinds["dead letter"],
        "late": late,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Make a month of webhooks.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--events", type=int, default=20_000, help="of both streams together")
    parser.add_argument("--month", default="2025-10")
    parser.add_argument("--inbox", type=Path, default=Path(__file__).parent / "inbox")
    said = parser.parse_args()
    said.inbox.mkdir(parents=True, exist_ok=True)
    for name, lines in make_month(said.seed, said.events, said.month).items():
        path = said.inbox / f"{name}.ndjson"
        path.write_text("".join(f"{line.text}\n" for line in lines), "utf-8")
        print(path.name + ": " + ", ".join(f"{n} {what}" for what, n in summary(lines).items()))


if __name__ == "__main__":
    main()
