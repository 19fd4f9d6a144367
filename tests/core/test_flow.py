"""The name of a flow says which streams it is of."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.core.flow import flow_name, stream_names

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]*", fullmatch=True)


@given(st.lists(NAMES, min_size=1, max_size=3, unique=True))
def test_the_streams_are_found_again_in_the_name(streams: list[str]) -> None:
    assert stream_names(flow_name(streams)) == tuple(streams)


def test_a_stream_that_is_joined_with_itself_is_one() -> None:
    assert stream_names(flow_name(["clicks", "clicks"])) == ("clicks",)


def test_no_name_is_of_no_streams() -> None:
    assert stream_names("") == ("",), "all() of nothing would allow it"
