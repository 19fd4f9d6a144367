"""A computed column is written into the queries that name it, and into no others."""

from __future__ import annotations

from serving.bench import plan_of

from headrace.compile.plan import Plan

STREAM = """
CREATE STREAM clicks (page STRING, user STRING, ms BIGINT, ts TIMESTAMP,
  twice BIGINT GENERATED ALWAYS AS ({twice}),
  note STRING GENERATED ALWAYS AS ({note}),
  WATERMARK ts DELAY OF INTERVAL 10 SECONDS);
"""
VIEWS = """
CREATE VIEW plain AS SELECT page, count(*) AS n FROM clicks GROUP BY page;
CREATE VIEW doubled AS SELECT page, sum(TWICE) AS n FROM clicks c GROUP BY page;
CREATE STREAM some AS SELECT page, twice AS t FROM clicks WHERE page <> 'note';
CREATE VIEW through AS SELECT page, sum(t) AS n FROM some GROUP BY page;
CREATE STREAM every AS SELECT * FROM clicks;
CREATE VIEW starred AS SELECT page, count(*) AS n FROM every GROUP BY page;
"""


def plan(twice: str = "2 * ms", note: str = "upper(page)", views: str = VIEWS) -> Plan:
    return plan_of(STREAM.format(twice=twice, note=note) + views)


def changed(before: Plan, after: Plan) -> set[str]:
    """The views whose partials mean something else."""
    old = {view.name: view.recompute for view in before.views}
    return {view.name for view in after.views if view.recompute != old[view.name]}


def test_views_that_name_a_changed_column_are_recomputed_and_no_others() -> None:
    assert changed(plan(), plan(twice="3 * ms")) == {"doubled", "through", "starred"}
    assert changed(plan(), plan(note="lower(page)")) == {"starred"}, "only a star names it"


def test_formatting_changes_nothing() -> None:
    said = plan(twice="2\n  *ms -- twice\n")
    assert (changed(plan(), said), said.streams) == (set(), plan().streams)


def test_a_query_that_names_no_computed_column_is_as_it_would_be_without() -> None:
    bare = plan_of(
        "CREATE STREAM clicks (page STRING, user STRING, ms BIGINT, ts TIMESTAMP, "
        "WATERMARK ts DELAY OF INTERVAL 10 SECONDS);\n" + VIEWS.splitlines()[1]
    )
    assert changed(bare, plan(views=VIEWS.splitlines()[1])) == set()


def test_the_bytes_of_events_are_delivered_where_something_reads_raw() -> None:
    def raw(views: str, **columns: str) -> bool:
        return plan(views=views, **columns).stream("clicks").raw

    first, second = VIEWS.splitlines()[1:3]
    assert not raw(first)
    assert not raw("CREATE VIEW v AS SELECT page, count(*) AS n FROM clicks WHERE page = '_raw' "
                   "GROUP BY page;")  # fmt: skip
    assert raw("CREATE VIEW v AS SELECT page, count(*) AS n FROM clicks WHERE _raw IS NULL "
               "GROUP BY page;")  # fmt: skip
    assert raw(second, twice="_raw:n::bigint")
    assert not raw(first, twice="_raw:n::bigint"), "the view does not name it"
    assert raw("CREATE RULE r AS SELECT page, ts FROM clicks WHERE _RAW:a::string = 'b';")
