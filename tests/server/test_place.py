"""A job is let in where it fits, and otherwise told what it needs and what is free."""

from __future__ import annotations

import pytest

from headrace.core.errors import BadRequest, Conflict
from headrace.server.place import Place, Room, checked_place, memory_bytes
from headrace.server.settings import RoomSettings
from headrace.server.wish import Wish

ROOM = Room(4, 8 << 30, ["ssd"], {"big": "spark://big:7077"})


def refusal(place: Place, *taken: Place) -> Conflict:
    with pytest.raises(Conflict) as raised:
        ROOM.check(place, taken)
    return raised.value


def test_what_fits_is_let_in() -> None:
    ROOM.check(Place(4, "8g", tags=["ssd"]), [])
    ROOM.check(Place(1, "2g"), [Place(3, "6g")])


def test_too_many_cores_are_refused_with_what_is_free() -> None:
    error = refusal(Place(3, "1g"), Place(2, "1g"))
    assert error.message == "the job needs 3 cores and 1.0 GiB, and 2 cores and 7.0 GiB are free"
    assert error.detail == "the server has 4 cores and 8.0 GiB."
    assert error.hint == (
        "ask for less, pause or cancel another job, or raise [room] in server.toml."
    )


def test_too_much_memory_is_refused_also_where_more_is_taken_than_there_is() -> None:
    error = refusal(Place(1, "512m"), Place(9, "9g"))
    assert error.message == "the job needs 1 core and 0.5 GiB, and 0 cores and 0.0 GiB are free"


def test_a_tag_that_the_server_lacks_is_named() -> None:
    error = refusal(Place(tags=["gpu", "ssd"]))
    assert error.message == "the job needs a server with 'gpu', and this one lacks it"
    assert error.detail == "its tags are 'ssd'."


def test_a_pool_must_be_one_of_the_servers() -> None:
    error = refusal(Place(pool="huge"))
    assert (error.message, error.detail) == (
        "there is no Spark pool 'huge'",
        "the pools are 'big'.",
    )


def test_in_a_pool_the_cores_are_those_of_the_pool() -> None:
    place = Place(100, "1g", "big")
    ROOM.check(place, [])
    assert (ROOM.master(place), ROOM.master(Place(3))) == ("spark://big:7077", "local[3]")


def test_without_settings_the_room_is_the_machine() -> None:
    room = Room.of(RoomSettings())
    assert room.cores >= 1
    assert room.memory > 1 << 28
    assert Room.of(RoomSettings(cores=3, memory="5g")).memory == 5 << 30


@pytest.mark.parametrize("text", ["", "2", "g", "0g", "-1g", "2gg", "1.5g", "2 g", "9" * 40 + "g"])
def test_what_is_no_memory_is_refused(text: str) -> None:
    with pytest.raises(BadRequest) as raised:
        memory_bytes(text)
    assert raised.value.message.endswith("is no amount of memory")


def test_numbers_that_cannot_be_meant_are_refused() -> None:
    with pytest.raises(BadRequest, match="cores must be from 1 to 10000, not 0"):
        checked_place(Place(0))


def test_a_wish_changes_what_it_says() -> None:
    before = Place(2, "1g", "big", ["ssd"])
    assert Wish().over(before) == before
    assert Wish(memory="3g", pool="", tags=[]).over(before) == Place(2, "3g")
