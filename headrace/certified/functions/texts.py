"""Functions of text. Spark counts characters (code points) from 1, and from the end if negative."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from headrace.certified.function import Scalar, rows
from headrace.certified.patterns import certified_pattern
from headrace.certified.typed import TypedSql, combine, not_available, text_literal
from headrace.core.errors import BadQuery, LimitReached

# Native where all characters are ASCII; elsewhere the Python function has Spark's case mapping.
_ASCII = "CASE WHEN strlen({{0}}) = length({{0}}) THEN {0}({{0}}) ELSE spark_{0}({{0}}) END"
# The position of the first character of a substring, from 0, before it is cut at the text's start.
_FROM = "(CASE WHEN {1} > 0 THEN {1} - 1 WHEN {1} < 0 THEN length({0}) + {1} ELSE 0 END)"
_SUBSTRING = (
    f"CASE WHEN {{0}} IS NULL OR {{1}} IS NULL OR {{2}} IS NULL THEN NULL "
    f"WHEN {{2}} <= 0 OR {_FROM} + {{2}} <= 0 THEN '' "
    f"ELSE substring({{0}}, CAST(greatest({_FROM}, 0) + 1 AS BIGINT), "
    f"CAST({{2}} + least({_FROM}, 0) AS BIGINT)) END"
)
_PADDED = (
    "CASE WHEN {{0}} IS NULL OR {{1}} IS NULL OR {{2}} IS NULL THEN NULL WHEN {{1}} <= 0 THEN '' "
    "WHEN {{2}} = '' OR length({{0}}) >= {{1}} THEN left({{0}}, {{1}}) "
    "ELSE {0}({{0}}, {{1}}, {{2}}) END"
)
S, I = "STRING", "INT"  # noqa: E741
SIZE_MAX = 10_000


def _concat(given: Sequence[TypedSql]) -> TypedSql:
    return combine(given, f"({' || '.join(value.sql for value in given)})", S)


def _sized(form: str) -> Callable[[Sequence[TypedSql]], TypedSql]:
    """A text of a size that is written as a number, and not of such texts again: a query of a few
    words must not make gigabytes.
    """

    def make(given: Sequence[TypedSql]) -> TypedSql:
        size = given[1]
        if size.type != "INT" or int(size.literal or 0) > SIZE_MAX:
            raise LimitReached(
                f"repeat, lpad and rpad over views require a whole number of at most {SIZE_MAX:,}"
            )
        if any(word in value.sql for value in given for word in ("repeat(", "pad(")):
            raise not_available("repeat, lpad or rpad within another of them")
        return combine(given, form.format(*(value.sql for value in given)), S)

    return make


def _split_part(given: Sequence[TypedSql]) -> TypedSql:
    text, by, part = given
    if part.type != "INT" or part.literal == "0":
        raise BadQuery("the third argument of split_part must be an integer other than 0")
    whole = text.sql if part.literal in {"1", "-1"} else f"left({text.sql}, 0)"
    split = f"split_part({text.sql}, {by.sql}, {part.sql})"
    return combine(given, f"CASE WHEN {by.sql} = '' THEN {whole} ELSE {split} END", S)


def _regexp_like(given: Sequence[TypedSql]) -> TypedSql:
    text, pattern = given
    written = text_literal(certified_pattern(pattern.literal or ""))
    return text.as_type(f"regexp_matches({text.sql}, {written})", "BOOLEAN")


def _part_pattern(name: str, pattern: TypedSql) -> str:
    if pattern.type != S:
        raise not_available(f"{name} with a pattern of {pattern.type}")
    return text_literal(certified_pattern(pattern.literal or "", matched=True))


def _regexp_extract(given: Sequence[TypedSql]) -> TypedSql:
    """The first match, or a group of it; an empty text where there is none."""
    text, pattern, *rest = given
    written = _part_pattern("regexp_extract", pattern)
    group = rest[0].literal if rest else "1"
    if group is None:
        raise not_available("regexp_extract with a group that is not a literal")
    last = re.compile(pattern.literal or "").groups
    if group not in map(str, range(last + 1)):
        raise BadQuery(f"the group of regexp_extract must be from 0 to {last}, got {group}")
    return text.as_type(f"regexp_extract({text.sql}, {written}, {group})", S)


def _regexp_replace(given: Sequence[TypedSql]) -> TypedSql:
    text, pattern, by = given
    written, literal = _part_pattern("regexp_replace", pattern), by.literal or ""
    if by.type != S or "$" in literal or "\\" in literal:
        raise not_available("regexp_replace with anything but a plain text as the replacement")
    return text.as_type(f"regexp_replace({text.sql}, {written}, {by.sql}, 'g')", S)


def _split(given: Sequence[TypedSql]) -> TypedSql:
    text, pattern = given
    written = _part_pattern("split", pattern)
    return text.as_type(f"string_split_regex({text.sql}, {written})", "ARRAY<STRING>")


ROWS = rows(
    Scalar("upper", (S,), _ASCII.format("upper"), S),
    Scalar("lower", (S,), _ASCII.format("lower"), S),
    Scalar("initcap", (S,), "spark_initcap({0})", S),
    Scalar("length", (S,), "CAST(length({0}) AS INTEGER)", I),
    Scalar("octet_length", (S,), "CAST(strlen({0}) AS INTEGER)", I),
    Scalar("bit_length", (S,), "CAST(strlen({0}) * 8 AS INTEGER)", I),
    Scalar("trim", (S,), "trim({0}, ' ')", S),
    Scalar("ltrim", (S,), "ltrim({0}, ' ')", S),
    Scalar("rtrim", (S,), "rtrim({0}, ' ')", S),
    Scalar("btrim", (S,), "trim({0}, ' ')", S),
    Scalar("btrim", (S, S), "trim({0}, {1})", S),
    Scalar("ltrim", (S, S), "ltrim({1}, {0})", S),
    Scalar("rtrim", (S, S), "rtrim({1}, {0})", S),
    Scalar("concat", ("STRING*",), _concat),
    Scalar("concat_ws", (S, "STRING*"), "concat_ws({all})", S),
    Scalar("regexp_like", (S, "LITERAL"), _regexp_like),
    Scalar("regexp_extract", (S, "LITERAL"), _regexp_extract),
    Scalar("regexp_extract", (S, "LITERAL", "LITERAL"), _regexp_extract),
    Scalar("regexp_replace", (S, "LITERAL", "LITERAL"), _regexp_replace),
    Scalar("split", (S, "LITERAL"), _split),
    Scalar("substring", (S, I), _SUBSTRING.replace("{2}", str(2**31 - 1)), S),
    Scalar("substring", (S, I, I), _SUBSTRING, S),
    Scalar("left", (S, I), "CASE WHEN {1} <= 0 THEN left({0}, 0) ELSE left({0}, {1}) END", S),
    Scalar("right", (S, I), "CASE WHEN {1} <= 0 THEN left({0}, 0) ELSE right({0}, {1}) END", S),
    Scalar(
        "replace",
        (S, S, S),
        "CASE WHEN {1} = '' AND {2} IS NOT NULL THEN {0} ELSE replace({0}, {1}, {2}) END",
        S,
    ),
    Scalar("replace", (S, S), "CASE WHEN {1} = '' THEN {0} ELSE replace({0}, {1}, '') END", S),
    Scalar("repeat", (S, "LITERAL"), _sized("repeat({0}, greatest({1} + 0 * length({0}), 0))")),
    Scalar("lpad", (S, "LITERAL", S), _sized(_PADDED.format("lpad"))),
    Scalar("rpad", (S, "LITERAL", S), _sized(_PADDED.format("rpad"))),
    Scalar("lpad", (S, "LITERAL"), _sized(_PADDED.format("lpad").replace("{2}", "' '"))),
    Scalar("rpad", (S, "LITERAL"), _sized(_PADDED.format("rpad").replace("{2}", "' '"))),
    Scalar("instr", (S, S), "CAST(instr({0}, {1}) AS INTEGER)", I),
    Scalar("locate", (S, S), "CAST(instr({1}, {0}) AS INTEGER)", I),
    Scalar("startswith", (S, S), "starts_with({0}, {1})", "BOOLEAN"),
    Scalar("endswith", (S, S), "ends_with({0}, {1})", "BOOLEAN"),
    Scalar("contains", (S, S), "contains({0}, {1})", "BOOLEAN"),
    Scalar("split_part", (S, S, "LITERAL"), _split_part),
    Scalar("md5", ("STRING!",), "md5({0})", S),
    Scalar("ascii", (S,), "CASE WHEN {0} = '' THEN 0 ELSE CAST(unicode({0}) AS INTEGER) END", I),
    also={
        "ucase": "upper",
        "lcase": "lower",
        "char_length": "length",
        "character_length": "length",
        "len": "length",
        "substr": "substring",
        "position": "locate",
        "rlike": "regexp_like",
        "regexp": "regexp_like",
    },
)
