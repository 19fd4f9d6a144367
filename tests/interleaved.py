"""Runs several actors one step at a time, in an order that is chosen from outside.

An actor is a function that calls a store. Each call is a step: before it the actor stops, and the
schedule says who continues. Nothing runs at the same time as anything else, so the same choices
give the same run again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from random import Random
from typing import Any

from greenlet import getcurrent, greenlet

Choose = Callable[[list[str]], str]


def step(name: str) -> None:
    """Let the schedule decide who continues. Outside of a schedule, nothing happens."""
    if (schedule := getcurrent().parent) is not None:
        schedule.switch(name)


class Stepped:
    """A store whose every call is a step."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)

        def call(*args: Any, **more: Any) -> Any:
            step(name)
            return found(*args, **more)

        return call if callable(found) else found


class SteppedDatabase:
    """A database whose every transaction is a step."""

    def __init__(self, db: Any) -> None:
        self._db, self.changes = db, db.changes

    def read(self) -> AbstractContextManager[Any]:
        step("read")
        return self._db.read()

    def write(self) -> AbstractContextManager[Any]:
        step("write")
        return self._db.write()


def run(actors: Mapping[str, Callable[[], None]], choose: Choose) -> Iterator[tuple[str, str]]:
    """Run all actors to their ends; after each step, whose it was and which call it made."""
    waiting = {name: greenlet(actor) for name, actor in actors.items()}
    calls = dict.fromkeys(waiting, "begin")
    while waiting:
        name = choose(list(waiting))
        made, calls[name] = calls[name], waiting[name].switch()
        if waiting[name].dead:
            del waiting[name]
        yield name, made


def at_random(rng: Random) -> Choose:
    """Each order has its own chance of an interruption, so some have few and some have many."""
    chance, last = rng.choice((0.05, 0.2, 0.5)), ""

    def choose(names: list[str]) -> str:
        nonlocal last
        if last not in names or rng.random() < chance:
            last = rng.choice(names)
        return last

    return choose


def in_parts(parts: list[tuple[str, int]], rest: list[str]) -> Choose:
    """Each part is an actor and how many steps it takes; then the rest go to their ends, one after
    the other.
    """
    left = [[name, steps] for name, steps in parts]

    def choose(names: list[str]) -> str:
        while left and (left[0][1] == 0 or left[0][0] not in names):
            left.pop(0)
        if left:
            left[0][1] -= 1
            return left[0][0]
        return next(name for name in rest if name in names)

    return choose
