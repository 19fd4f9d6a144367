"""What must be known of a view to tell its changes, or why it cannot be told in the way asked for.

A row is known by its keys; a view that does not show all of them, or is read from other views, has
rows that are known by all of their values. The difference of two values is again a value of that
aggregate for count and sum only, so only these can be told DISCARDING; EVERY n EVENTS needs
count(*), which is the only column that says how many events a row has, and the keys, since they say
what was last sent of the row. A session that was sent is taken back when a longer one continues it,
which is known by the other keys, so ON TIME of sessions needs them too.
tests/compile/test_subscribe.py reads each refusal.
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


def shape_of(plan: Plan, asked: Subscription) -> ViewShape:
    """What the subscription needs of its view; an error says why it cannot be had."""
    view = plan.view(asked.view)
    if view is None:
        raise unknown_view(asked.view, [known.name for known in plan.shown_views])
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
    _check_keys(view, asked)
    if query := query_of(view, asked):
        check_query(view, query)
    _check_time(plan, shape, asked)
    _check_sessions(plan, view, shape, asked)
    _check_values(view, shape, asked)
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
    """The columns that a row of a view is known by; None if the view does not show them all."""
    shown = {output.key: output.name for output in view.outputs if output.key}
    whole = view.kept and all(key.column in shown for key in view.keys)
    return tuple(shown[key.column] for key in view.keys) if whole else None


def query_of(view: ViewPlan, asked: Subscription) -> str:
    """The SELECT of the rows that a subscription is about; empty if its keys say them all, which
    is the quicker way.
    """
    keys = all(_is_key(view, name) for name, _ in asked.where)
    if keys and not asked.condition:
        return ""
    said = [exp.column(name).eq(exp.Literal.string(value)) for name, value in asked.where]
    parts = [*(sql_of(part) for part in said), *([asked.condition] if asked.condition else [])]
    return f"SELECT * FROM {view.name} WHERE {' AND '.join(f'({part})' for part in parts)}"


def _is_key(view: ViewPlan, name: str) -> bool:
    output = view.output(name)
    return output is not None and (not view.kept or output.key is not None)


def _check_keys(view: ViewPlan, asked: Subscription) -> None:
    for name, _ in asked.where:
        output = view.output(name)
        if output is None or output.type == WINDOW:
            raise BadRequest(
                f"'{name}' is not a column of view '{view.name}' that can equal a value",
                hint=f"there are: {', '.join(o.name for o in view.outputs if o.type != WINDOW)}.",
            )


def _check_time(plan: Plan, shape: ViewShape, asked: Subscription) -> None:
    if not asked.timed:
        return
    if shape.window is None:
        raise Unsupported(
            f"view '{shape.view}' has no window, so nothing of it is on time or late",
            hint="subscribe with EARLY EVERY …, or without EMIT to hear every change.",
        )
    bare = [name for name in shape.streams if plan.stream(name).watermark is None]
    if bare:
        raise Unsupported(
            f"view '{shape.view}' reads stream '{bare[0]}', which has no watermark, "
            "so its windows never end",
            hint="give the stream a column list with WATERMARK column DELAY OF INTERVAL ….",
        )


def _check_sessions(plan: Plan, view: ViewPlan, shape: ViewShape, asked: Subscription) -> None:
    """Without the keys it is not known which session a longer one continues."""
    if not asked.timed or shape.keys is not None or not _has_sessions(plan, view):
        return
    source = next((name for name in view.reads), None)
    raise Unsupported(
        f"view '{view.name}' has sessions and does not show its keys, so one that was sent cannot "
        "be taken back when it is merged",
        hint="add every key to the SELECT list."
        if source is None
        else f"subscribe to view '{source}' with WHERE …, or without ON TIME and ALLOWED LATENESS.",
    )


def _has_sessions(plan: Plan, view: ViewPlan) -> bool:
    """Whether windows of the view, or of one that it reads, are sessions."""
    reads = [found for name in view.reads if (found := plan.view(name))]
    return view.joins is not None or any(_has_sessions(plan, read) for read in reads)


def _check_values(view: ViewPlan, shape: ViewShape, asked: Subscription) -> None:
    if asked.form is Form.PANES and asked.counts_events and shape.count is None:
        raise Unsupported(
            f"view '{view.name}' does not say how many events a row has, so EVERY n EVENTS "
            "cannot be counted",
            hint="add count(*) AS events to the view, or use EVERY INTERVAL ….",
        )
    if asked.form is Form.PANES and asked.counts_events and shape.keys is None:
        raise Unsupported(
            f"view '{view.name}' does not show its keys, so EVERY n EVENTS cannot be counted",
            hint="add every key to the SELECT list, or use EVERY INTERVAL ….",
        )
    if asked.mode is not Mode.DISCARDING:
        return
    if shape.keys is None:
        raise Unsupported(
            f"view '{view.name}' does not show its keys, so it cannot be told DISCARDING",
            hint="add every key to the SELECT list, or use RETRACTING.",
        )
    for output in view.outputs:
        if output.key is None and not _subtracts(output, view):
            raise Unsupported(
                f"column '{output.name}' of view '{view.name}' cannot be told DISCARDING",
                detail="only the difference of a count or a sum is the value of the new events.",
                hint="use ACCUMULATING or RETRACTING.",
            )


def _call(output: OutputPlan, view: ViewPlan) -> CallPlan | None:
    """The aggregate that the output is, alone."""
    return next((call for call in view.calls if call.column == output.finish), None)


def _subtracts(output: OutputPlan, view: ViewPlan) -> bool:
    """Whether the output is a count or a sum alone."""
    call = _call(output, view)
    # A decimal is sent as text, and no difference of texts is taken.
    exact = call is not None and call.type.startswith("DECIMAL")
    return call is not None and call.name in {"count", "sum"} and not exact


def _counts(output: OutputPlan, view: ViewPlan) -> bool:
    """Whether the output is count(*)."""
    call = _call(output, view)
    return call is not None and call.name == "count" and call.whole
