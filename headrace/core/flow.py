"""The name of a flow, which is made of the names of its streams: "orders+payments".

    stream_names(flow_name(streams)) == streams, each once

A stream's name is an identifier and has no "+", so the name of a flow says which streams it is of.
Code that has a plan uses its FlowPlan or ViewPlan; bare names come from answers and over HTTP, and
are parsed here and nowhere else. tests/core/test_flow.py checks the equation.
"""

from __future__ import annotations

from collections.abc import Iterable

_AND = "+"


def flow_name(streams: Iterable[str]) -> str:
    """The name of the flow of these streams, in their order."""
    return _AND.join(streams)


def stream_names(flow: str) -> tuple[str, ...]:
    """The streams of a flow, one that is joined with itself once. There is always at least one: an
    authorization check over no streams would allow everything.

    >>> stream_names("orders+payments"), stream_names("clicks+clicks"), stream_names("")
    (('orders', 'payments'), ('clicks',), ('',))
    """
    return tuple(dict.fromkeys(flow.split(_AND)))
