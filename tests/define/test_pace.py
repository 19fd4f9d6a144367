"""The pace of a stream: what it says, what the settings say otherwise, and each refusal."""

from __future__ import annotations

import pytest

from headrace.core.errors import BadDefinition
from headrace.core.time import MILLISECOND
from headrace.define.definitions import PaceDefinition, StreamDefinition
from headrace.define.pace import with_pace
from headrace.define.settings import SpeedSettings
from headrace.define.statements import read_statements


def pace_of(options: str) -> PaceDefinition:
    (stream,) = read_statements(f"CREATE STREAM a (x INT) WITH ({options})", "a.sql")
    assert isinstance(stream, StreamDefinition)
    assert stream.options == {}
    return stream.pace


def test_a_stream_that_says_nothing_goes_at_the_pace_of_the_settings() -> None:
    settings = SpeedSettings()
    assert pace_of("source = 'http'") == PaceDefinition()
    assert with_pace(settings, PaceDefinition()) == settings


def test_a_stream_may_go_at_its_own_pace() -> None:
    pace = pace_of("trigger = '50 milliseconds', epoch_events_max = '10', lag_events_max = 500")
    assert pace == PaceDefinition(50 * MILLISECOND, 10, "slow", 500)
    own = with_pace(SpeedSettings(), pace)
    assert (own.trigger_us, own.epoch_events_max) == (50 * MILLISECOND, 10)
    assert own.group_us == SpeedSettings().group_us


@pytest.mark.parametrize(("text", "sheds"), [("SHED RANDOM", "random"), ("shed  oldest", "oldest")])
def test_a_stream_may_shed(text: str, sheds: str) -> None:
    assert pace_of(f"overload = '{text}', lag_events_max = '9'").sheds == sheds


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            "overload = 'drop'",
            "overload must be one of 'slow', 'shed random', 'shed oldest', not 'drop'",
        ),
        (
            "overload = 'shed random'",
            "overload = 'shed random' requires lag_events_max, the backlog above which it sheds",
        ),
        ("trigger = 'often'", "trigger must be a duration such as '500 ms', not 'often'"),
        ("lag_events_max = '0'", "lag_events_max must be a whole number of at least 1, not '0'"),
        (
            "epoch_events_max = -1",
            "epoch_events_max must be a whole number of at least 1, not '-1'",
        ),
    ],
)
def test_each_refusal_says_what_it_may_be(options: str, sentence: str) -> None:
    with pytest.raises(BadDefinition) as caught:
        pace_of(options)
    assert (caught.value.message, str(caught.value.origin)) == (sentence, "a.sql:1")
