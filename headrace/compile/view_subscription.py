"""Resolves a subscription to a view, or refuses it.

A row is identified by its keys; if a view does not show all of them, or is a view over views, by
all of its values. DISCARDING requires that the difference of two values is a value of the same
aggregate, which is true for count and sum only. EVERY n EVENTS requires count(*), the number of a
row's events, and the keys, to find what was last sent of the row. A session that was sent is
retracted when a longer one replaces it, which is found by the other keys, so ON TIME of sessions
requires them too. tests/compile/test_view_subscription.py reads each error.
"""

from __future__ import annotations

from sqlglot import exp

from headrace.certified.relation import ReadRelation
from headrace.certified.select import compile_query
from headrace.compile.explain import unknown_view
from headrace.compile.finish import answer_columns
from headrace.compile.plan import WINDOW, CallPlan, OutputPlan, Plan, ViewPlan
from headrace.core.errors import BadRequest, Unsupported
from headrace.core.origin import Origin
from headrace.core.subscription import Form, Mode, Subscription, ViewShape
from headrace.define.dialect import parse_query, sql_of


def shape_of(plan: Plan, subscription: Subscription) -> ViewShape:
    """The shape of the subscription's view; Unsupported or BadRequest if it cannot be served."""
    view = plan.view(subscription.view)
    if view is None:
        raise unknown_view(subscription.view, [known.name for known in plan.shown_views])
    shape = ViewShape(
        view.name,
        tuple(output.name for output in view.outputs),
        keys_of(view),
        next((output.name for output in view.outputs if output.type == WINDOW), None),
        next((output.name for output in view.outputs if _counts(output, view)), None),
        streams_of(plan, view),
        bool(view.order) or _ordered(view),
        view.joins is not None and keys_of(view) is not None,
    )
    _check_keys(view, subscription)
    if query := query_of(view, subscription):
        check_query(view, query)
    _check_time(plan, shape, subscription)
    _check_sessions(plan, view, shape, subscription)
    _check_values(view, shape, subscription)
    return shape


def check_query(view: ViewPlan, query: str) -> None:
    """Refuse a query over the view that cannot be answered."""
    relation = ReadRelation(view.name, answer_columns(view))
    parsed = parse_query(query, Origin("subscription", 1))
    compile_query(parsed, lambda name: relation if name == view.name.lower() else None)


def _ordered(view: ViewPlan) -> bool:
    return bool(view.reads and parse_query(view.read_sql, Origin("plan", 1)).args.get("order"))


def streams_of(plan: Plan, view: ViewPlan) -> tuple[str, ...]:
    """The streams behind a view."""
    if view.kept:
        return (view.stream,)
    reads = [found for name in view.reads if (found := plan.view(name))]
    return tuple(dict.fromkeys(name for read in reads for name in streams_of(plan, read)))


def keys_of(view: ViewPlan) -> tuple[str, ...] | None:
    """The key columns of a view's rows; None if the view does not show all of them."""
    shown = {output.key: output.name for output in view.outputs if output.key}
    whole = view.kept and all(key.column in shown for key in view.keys)
    return tuple(shown[key.column] for key in view.keys) if whole else None


def query_of(view: ViewPlan, subscription: Subscription) -> str:
    """The SELECT of a subscription's rows; empty if a lookup by keys is enough, which is faster."""
    keys = all(view.key_parameter(name) for name, _ in subscription.where)
    if keys and not subscription.condition:
        return ""
    said = [exp.column(name).eq(exp.Literal.string(value)) for name, value in subscription.where]
    parts = [
        *(sql_of(part) for part in said),
        *([subscription.condition] if subscription.condition else []),
    ]
    return f"SELECT * FROM {view.name} WHERE {' AND '.join(f'({part})' for part in parts)}"


def _check_keys(view: ViewPlan, subscription: Subscription) -> None:
    for name, _ in subscription.where:
        output = view.output(name)
        if output is None or output.type == WINDOW:
            raise BadRequest(
                f"'{name}' is not a column of view '{view.name}' that can be compared with a value",
                hint=f"available: {', '.join(o.name for o in view.outputs if o.type != WINDOW)}.",
            )


def _check_time(plan: Plan, shape: ViewShape, subscription: Subscription) -> None:
    if not subscription.timed:
        return
    if shape.window is None:
        raise Unsupported(
            f"view '{shape.view}' has no window, so none of its rows is on time or late",
            hint="subscribe with EARLY EVERY …, or without EMIT to receive every change.",
        )
    bare = [name for name in shape.streams if plan.stream(name).watermark is None]
    if bare:
        raise Unsupported(
            f"view '{shape.view}' reads stream '{bare[0]}', which has no watermark, "
            "so its windows never close",
            hint="give the stream a column list with WATERMARK column DELAY OF INTERVAL ….",
        )


def _check_sessions(
    plan: Plan, view: ViewPlan, shape: ViewShape, subscription: Subscription
) -> None:
    """Without the keys it is unknown which session a longer one replaces."""
    if not subscription.timed or shape.keys is not None or not _has_sessions(plan, view):
        return
    source = next((name for name in view.reads), None)
    raise Unsupported(
        f"view '{view.name}' has session windows but does not select all of its keys, so a session "
        "cannot be retracted when it is merged with another",
        hint="add every key to the SELECT list."
        if source is None
        else f"subscribe to view '{source}' with WHERE …, or without ON TIME and ALLOWED LATENESS.",
    )


def _has_sessions(plan: Plan, view: ViewPlan) -> bool:
    """Whether windows of the view, or of one that it reads, are sessions."""
    reads = [found for name in view.reads if (found := plan.view(name))]
    return view.joins is not None or any(_has_sessions(plan, read) for read in reads)


def _check_values(view: ViewPlan, shape: ViewShape, subscription: Subscription) -> None:
    if subscription.form is Form.PANES and subscription.counts_events and shape.count is None:
        raise Unsupported(
            f"EVERY n EVENTS requires the number of events of each row, but view '{view.name}' "
            "does not select it",
            hint="add count(*) AS events to the view, or use EVERY INTERVAL ….",
        )
    if subscription.form is Form.PANES and subscription.counts_events and shape.keys is None:
        raise Unsupported(
            f"EVERY n EVENTS requires all keys, but view '{view.name}' does not select all of them",
            hint="add every key to the SELECT list, or use EVERY INTERVAL ….",
        )
    if subscription.mode is not Mode.DISCARDING:
        return
    if shape.keys is None:
        raise Unsupported(
            f"DISCARDING requires all keys, but view '{view.name}' does not select all of them",
            hint="add every key to the SELECT list, or use RETRACTING.",
        )
    for output in view.outputs:
        if output.key is None and not _subtracts(output, view):
            raise Unsupported(
                f"column '{output.name}' of view '{view.name}' cannot be sent DISCARDING",
                detail="DISCARDING sends differences, which are defined only for counts and sums.",
                hint="use ACCUMULATING or RETRACTING.",
            )


def _call(output: OutputPlan, view: ViewPlan) -> CallPlan | None:
    """The aggregate that the output is, alone."""
    return next((call for call in view.calls if call.column == output.finish), None)


def _subtracts(output: OutputPlan, view: ViewPlan) -> bool:
    """Whether the output is a count or a sum alone."""
    call = _call(output, view)
    # A decimal is sent as text, which has no difference.
    exact = call is not None and call.type.startswith("DECIMAL")
    return call is not None and call.name in {"count", "sum"} and not exact


def _counts(output: OutputPlan, view: ViewPlan) -> bool:
    """Whether the output is count(*)."""
    call = _call(output, view)
    return call is not None and call.name == "count" and call.whole
