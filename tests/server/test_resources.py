"""A job is let in where it fits, and otherwise told what it needs and what is free."""

from __future__ import annotations

import pytest

from headrace.core.errors import BadRequest, Conflict
from headrace.server.resources import (
    JobResources,
    ResourceRequest,
    ServerCapacity,
    check_resources,
    memory_bytes,
)
from headrace.server.settings import RoomSettings

ROOM = ServerCapacity(4, 8 << 30, ["ssd"], {"big": "spark://big:7077"})


def refusal(resources: JobResources, *taken: JobResources) -> Conflict:
    with pytest.raises(Conflict) as raised:
        ROOM.check(resources, taken)
    return raised.value


def test_what_fits_is_let_in() -> None:
    ROOM.check(JobResources(4, "8g", tags=["ssd"]), [])
    ROOM.check(JobResources(1, "2g"), [JobResources(3, "6g")])


def test_too_many_cores_are_refused_with_what_is_free() -> None:
    error = refusal(JobResources(3, "1g"), JobResources(2, "1g"))
    assert error.message == (
        "the job requests 3 cores and 1.0 GiB, but only 2 cores and 7.0 GiB are free"
    )
    assert error.detail == "the server has 4 cores and 8.0 GiB."
    assert error.hint == (
        "request less, pause or cancel another job, or raise [room] in server.toml."
    )


def test_too_much_memory_is_refused_also_where_more_is_taken_than_there_is() -> None:
    error = refusal(JobResources(1, "512m"), JobResources(9, "9g"))
    assert error.message == (
        "the job requests 1 core and 0.5 GiB, but only 0 cores and 0.0 GiB are free"
    )


def test_a_tag_that_the_server_lacks_is_named() -> None:
    error = refusal(JobResources(tags=["gpu", "ssd"]))
    assert error.message == "the job requires tags that this server does not have: 'gpu'"
    assert error.detail == "the server's tags are 'ssd'."


def test_a_pool_must_be_one_of_the_servers() -> None:
    error = refusal(JobResources(pool="huge"))
    assert (error.message, error.detail) == (
        "there is no Spark pool 'huge'",
        "available pools: 'big'.",
    )


def test_in_a_pool_the_cores_are_those_of_the_pool() -> None:
    resources = JobResources(100, "1g", "big")
    ROOM.check(resources, [])
    assert (ROOM.master(resources), ROOM.master(JobResources(3))) == (
        "spark://big:7077",
        "local[3]",
    )


def test_without_settings_the_room_is_the_machine() -> None:
    room = ServerCapacity.of(RoomSettings())
    assert room.cores >= 1
    assert room.memory > 1 << 28
    assert ServerCapacity.of(RoomSettings(cores=3, memory="5g")).memory == 5 << 30


@pytest.mark.parametrize("text", ["", "2", "g", "0g", "-1g", "2gg", "1.5g", "2 g", "9" * 40 + "g"])
def test_what_is_no_memory_is_refused(text: str) -> None:
    with pytest.raises(BadRequest) as raised:
        memory_bytes(text)
    assert raised.value.message.endswith("is not a valid amount of memory")


def test_numbers_that_cannot_be_meant_are_refused() -> None:
    with pytest.raises(BadRequest, match="cores must be from 1 to 10000, not 0"):
        check_resources(JobResources(0))


def test_a_wish_changes_what_it_says() -> None:
    before = JobResources(2, "1g", "big", ["ssd"])
    assert ResourceRequest().applied_to(before) == before
    assert ResourceRequest(memory="3g", pool="", tags=[]).applied_to(before) == JobResources(
        2, "3g"
    )
