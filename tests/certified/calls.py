"""Expressions over the relation of tests/certified/edges.py: every function with drawn arguments,
every operator and cast between all types, and drawn combinations of these.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import islice

from headrace.certified.function import Scalar
from headrace.certified.functions import SCALARS

LETTERS = "sdibmwtyofkhzxlgpr"
DRAWS_MAX = 2_000
_COLUMNS = {
    "STRING": "s", "INT": "i", "BIGINT": "b", "DOUBLE": "d", "DATE": "y", "TIMESTAMP": "t",
    "BOOLEAN": "o", "INTEGER": "bikh", "NUMBER": "dibmwfkh", "ANY": LETTERS, "ARRAY": "lg",
    "MAP": "p", "COLLECTION": "lgp",
}  # fmt: skip
_LITERALS = {
    "round": ["0", "1", "2", "-1", "-3"],
    "date_trunc": ["'year'", "'month'", "'week'", "'day'", "'hour'", "'quarter'", "'second'"],
    "trunc": ["'year'", "'mm'", "'week'", "'quarter'"],
    "date_format": [
        "'yyyy-MM-dd'", "'dd/MM/yy HH:mm:ss'", "'MMM d, yyyy'", "'EEEE'", "'SSSSSS'", "'h a'",
        "'DDD'", "'MMMM'", "'SSS'", "'EEE H'", "'yyyy-MM-dd''T''HH:mm'", "'yyyy-''Q''q'", "'Q m:s'",
    ],
    "split_part": ["1", "2", "-1", "3"],
    "timestampdiff": ["SECOND", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"],
    "date_part": [
        "'year'", "'YEAROFWEEK'", "'qtr'", "'mon'", "'week'", "'d'", "'dow'", "'dow_iso'", "'doy'",
        "'h'", "'min'", "'second'",
    ],
    "regexp_like": [
        "'^a'", "'b$'", "'a.b'", "'^[A-Z0-9]+$'", "'(foo|ab)c'", "'^\\\\d{1,3}(?:-\\\\d+)*'", "'ß'",
        "'^.$'", "''", "'b\\\\w?c'",
    ],
    "regexp_extract": [
        "'(a|b)c'", "'([a-z]+) ([a-z])'", "'^(\\\\d+)'", "'(ä)|(b)'", "'(.)'",
        "'(-)(\\\\d+?)'", "'(b.?)'",
    ],
    "regexp_extract 2": ["0", "1"],
    "regexp_replace": ["'a'", "'[0-9]+'", "'^ '", "'.'", "'(a|ab)b?'", "'\\\\.|-'", "'b{2,3}?'"],
    "regexp_replace 2": ["''", "'x'", "'ß-'"],
    "split": ["'a'", "'-'", "'[ab]'", "' +'", "'bc|b'", "'\\\\.'", "'^a'"],
}  # fmt: skip
_LITERALS |= {
    "datepart": _LITERALS["date_part"],
    "rlike": _LITERALS["regexp_like"],
    "regexp": _LITERALS["regexp_like"],
}
# Arguments that would make an answer of gigabytes, or a time that no calendar has.
_SMALL = {"repeat", "lpad", "rpad", "date_add", "date_sub", "dateadd", "add_months"}
_SECONDS = {"timestamp_seconds", "timestamp_millis", "timestamp_micros", "date_from_unix_date"}
# Not within others: a date that they make may lie outside the calendar, where we give NULL.
_ALONE = {*_SMALL, *_SECONDS, "make_date"}
# Of an argument that was computed they show its last bits.
_STEEP = {"sin", "cos", "tan", "exp"}
TYPES = [
    "STRING", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DATE",
    "TIMESTAMP", "DECIMAL(10,1)", "DECIMAL(38,6)", "TIMESTAMP_NTZ",
]  # fmt: skip
_SIGNS = ["+", "-", "*", "/", "%", "div", "&", "=", "<>", "<", "<=", ">", ">=", "<=>"]
_FORMS = [
    "-{a}", "{a} IS NULL", "{a} IS NOT NULL", "{a} BETWEEN {b} AND {a}", "{a} IN ({b}, {a})",
    "{a} + INTERVAL 1 MONTH", "{a} - INTERVAL '1 day 2 hours'", "{a} + INTERVAL '3' DAY",
    "{a} = 1", "{a} > 1.5", "{a} < '2026-02-01'", "{a} * 0.5", "{a} / 3", "1 + {a}",
    "100.0 * {a} / b2", "{a} LIKE 'a%'", "{a} || 'x'", "CASE WHEN o1 THEN {a} ELSE {b} END",
    "coalesce({a}, {b})", "if(o1, {a}, {b})", "nullif({a}, {b})", "greatest({a}, {b})",
    "{a} IN ('a', '1')", "CASE {a} WHEN {b} THEN 1 ELSE 2.5 END",
]  # fmt: skip
PLAIN = [
    r"s1 LIKE '%b%'", r"s1 LIKE 'a\\%b'", "s1 LIKE 'x!_y' ESCAPE '!'", "s1 ILIKE 'A%'",
    r"s1 LIKE 'a\\\\b'", r"s1 LIKE '%\\\\'", "s1 LIKE 'x!!%' ESCAPE '!'",
    r"s1 NOT LIKE '%b%'", "s1 NOT LIKE 'x!_y' ESCAPE '!'", "s1 NOT ILIKE 'A%'",
    "NOT o1", "o1 AND o2", "o1 OR o2", "o1 IS TRUE", "o2 IS NOT FALSE", "b1 IN (1, 2, 86400)",
    "i1 NOT IN (1, NULL)", "extract(YEAR FROM t1)", "extract(HOUR FROM t1)",
    "extract(SECOND FROM t1)", "extract(DOW FROM y1)", "datediff(MONTH, t1, t2)",
    "s1 RLIKE '[ab]+c'", "months_between(y1, y2)", "width_bucket(i1, 0, 100, 10)",
    "width_bucket(d1, 10, -10, 4)", "date_add(y1, row_number() OVER (ORDER BY row))",
    "y1 - rank() OVER (ORDER BY row)", "lag(t1) OVER (ORDER BY row) + INTERVAL 1 DAY",
    "m1 - lag(m1) OVER (ORDER BY row)", "add_months(y1, ntile(3) OVER (ORDER BY row))",
    "position('b' IN s1)", "trim(BOTH 'a' FROM s1)", "trim(LEADING 'a' FROM s1)",
    "substr(s1, 2)", "substr(s1, -2, 1)", "round(m1, 1)", "round(m1, -2)", "m1 > 0.5",
    "CAST(m1 / i1 AS STRING)", "CAST(CAST(m1 AS DECIMAL(30,9)) AS STRING)",
    "DATE '2024-02-29' + INTERVAL 1 YEAR", "TIMESTAMP '2026-01-31 10:00:00' + INTERVAL 1 MONTH",
    "t1 + INTERVAL '1 day 1.5 seconds'", "t1 - INTERVAL '- 1 day'", "y1 + INTERVAL 24 HOURS",
    "t1 + INTERVAL 1 DAY 2 HOURS", "y1 - INTERVAL 1 WEEK", "INTERVAL '-1 day 2 hours' + t1",
    "t1 - INTERVAL '1.1234569 seconds'", "t1 + INTERVAL 1 YEAR 2 MONTHS",
    "sum(m1) OVER ()", "sum(w1) OVER (ORDER BY row)", "avg(w1) OVER (ORDER BY row)",
    "sum(w2 / 1000) OVER ()", "max(w1) OVER ()", "sum(b1) OVER ()",
    "sum(i1) OVER ()", "avg(m1) OVER ()", "avg(i1) OVER ()",
    "min(d1) OVER (PARTITION BY o1)", "max(d1) OVER (PARTITION BY o1)", "count(s1) OVER ()",
    "max(s1) OVER ()", "count_if(o1) OVER ()", "bool_and(o1) OVER ()", "1.50", "1L", "2.5D", "1e3",
]  # fmt: skip
# What is inside of lists, maps and objects, and the types that no literal has. Few drawn arguments
# fit these, so all of them are compared each time.
NESTED = [
    "r1.a", "r1.c.d", "edges.r1.b[0]", "r2.b[1] + 1", "l1[0]", "l1[k1]", "g1[i1]", "p1['a']",
    "l1[-2]", "g1[row % 9 - 5]",
    "p1[s1]", "p1['Äß'] + i1", "element_at(l1, 1)", "element_at(g1, -1)", "element_at(p1, 'b')",
    "try_element_at(l1, 2)", "get(l1, i2)", "size(l1)", "cardinality(p1)", "size(r1.b)",
    "array_size(g1)", "array_contains(l1, 'a')", "array_contains(l1, s2)", "array_contains(g1, d1)",
    "array_contains(r1.b, m2)", "array_position(l1, 'b')", "array_position(g1, d2)",
    "array_max(g1)", "array_min(l1)", "array_max(r2.b)", "map_keys(p1)",
    "map_values(p1)",
    "map_contains_key(p1, 'a')", "map_keys(p1)[0]", "r1 = r2", "r1.c = r2.c", "l1 <=> l2",
    "g1 <> g2", "l1 IN (l2, l1)", "r1 IN (r2, r1)", "CASE WHEN o1 THEN r1 END.a",
    "coalesce(l1, l2)", "nullif(g1, g2)", "r1 IS NULL", "count(r1) OVER ()",
    "first_value(r1) OVER (ORDER BY row)", "lag(p1) OVER (ORDER BY row)",
    "row_number() OVER (PARTITION BY l1 ORDER BY row)", "max(x1) OVER ()", "x1 < x2", "z1 < z2",
    "z1 = t1", "z1 > y1", "year(z1)", "hour(z1)", "CAST(z1 AS DATE)", "CAST(z1 AS TIMESTAMP)",
    "CAST(y1 AS TIMESTAMP_NTZ)", "CAST(z1 AS STRING)", "date_trunc('month', z1)",
    "date_format(z1, 'yyyy')", "x1 = x2", "min(z1) OVER ()", "datediff(z1, z2)",
]  # fmt: skip


def calls(rng: random.Random, each: int, offered: Callable[[str], bool]) -> list[str]:
    """Every form of every function `each` times, with drawn columns that it takes."""
    return [
        text
        for forms in SCALARS.values()
        for form in forms
        for text in _calls(form, rng, each, offered)
    ]


def _calls(
    form: Scalar, rng: random.Random, each: int, offered: Callable[[str], bool]
) -> list[str]:
    drawn = (_call(form, rng) for _ in range(DRAWS_MAX))
    found = list(islice(filter(offered, drawn), each))
    assert len(found) == each, f"{form.name}({', '.join(form.takes)}) takes no columns of `edges`"
    return found


def operations() -> list[str]:
    """Every operator between all types, every form with all types, every cast."""
    made = [*PLAIN, *NESTED]
    for a in LETTERS:
        for b in LETTERS:
            made += [f"{a}1 {sign} {b}2" for sign in _SIGNS]
            made += [form.format(a=f"{a}1", b=f"{b}2") for form in _FORMS if "{b}" in form]
        made += [form.format(a=f"{a}1") for form in _FORMS if "{b}" not in form]
        made += [f"CAST({a}1 AS {type})" for type in TYPES]
    return made


def combinations(rng: random.Random) -> Iterator[str]:
    """Functions of functions, without end; many have types that do not fit and are refused."""
    functions = [
        form for name, forms in SCALARS.items() if name not in _ALONE | _STEEP for form in forms
    ]
    while True:
        outer = rng.choice(functions)
        written = []
        for place, kind in enumerate(outer.takes):
            # A text that was computed may be a date outside the calendar.
            plain = kind.startswith(("LITERAL", "DATE", "TIMESTAMP")) or rng.random() < 0.3
            call = f"({_call(rng.choice(functions), rng)})"
            written.append(_argument(outer.name, kind, rng, place) if plain else call)
        yield f"{outer.name}({', '.join(written)})"


def _call(form: Scalar, rng: random.Random) -> str:
    kinds = [*form.takes, *(form.takes[-1:] if form.variadic else ())]
    if "SAME" in form.takes or "SAME*" in form.takes:
        letter = rng.choice(LETTERS)
        return f"{form.name}({', '.join(f'{letter}{rng.choice((1, 2))}' for _ in kinds)})"
    given = [_argument(form.name, kind, rng, n) for n, kind in enumerate(kinds)]
    return f"{form.name}({', '.join(given)})"


def _argument(name: str, kind: str, rng: random.Random, place: int = 0) -> str:
    kind = kind.removesuffix("*").removesuffix("!")
    if name in _SMALL and kind in {"INT", "LITERAL"}:
        return str(rng.randrange(-3, 9))
    if kind == "LITERAL":
        return rng.choice(_LITERALS.get(f"{name} {place}") or _LITERALS[name])
    if name in _SECONDS:
        return f"CAST(i{rng.choice((1, 2))} % 10000 AS {kind})"
    if name in {"if", "iff"} and place == 0:
        return "o1"
    return f"{rng.choice(_COLUMNS.get(kind, 's'))}{rng.choice((1, 2))}"
