"""Validation of a pattern, with a sentence for each mistake.

`check` is called when a stream is defined: a pattern that passes can be searched for in any rows
without an error. All mistakes are raised together. tests/pattern/test_check.py reads each sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headrace.core.errors import Unsupported
from headrace.core.mistakes import Mistakes
from headrace.core.pattern import (
    Absent,
    Choice,
    Classifier,
    End,
    Exclude,
    Expression,
    MatchAggregate,
    MatchId,
    Node,
    Pattern,
    Permute,
    Repeat,
    RowsPerMatch,
    Selection,
    Sequence,
    Value,
    variables,
)
from headrace.pattern import instructions
from headrace.pattern.evaluate import ExpressionCompiler, leaves
from headrace.pattern.instructions import Program, SkipRest
from headrace.pattern.program import compile_pattern
from headrace.pattern.selection import compile_selection
from headrace.pattern.trail import TrailSlots


def check(pattern: Pattern, *, closed: bool = False) -> None:
    """Raise Unsupported if the pattern is not valid; `closed`: its input has an end."""
    mistakes = Mistakes()
    with mistakes.noted():
        _check_node(pattern, closed)
        program = compile_pattern(pattern.node)
        with mistakes.noted():
            _check_absent(pattern, program)
        with mistakes.noted():
            _check_skip(pattern, program)
        compile_selection(pattern.node, pattern.selection)
    with mistakes.noted():
        _check_modes(pattern)
    with mistakes.noted():
        _check_names(pattern)
    _check_expressions(pattern, mistakes)
    mistakes.end()


def parts(node: Node) -> Iterator[Node]:
    """The node and all that is in it."""
    yield node
    match node:
        case Sequence(inner) | Choice(inner) | Permute(inner):
            for part in inner:
                yield from parts(part)
        case Repeat(part) | Exclude(part):
            yield from parts(part)


def _refuse(wrong: bool, message: str, hint: str) -> None:
    if wrong:
        raise Unsupported(message, hint=hint)


def _check_node(pattern: Pattern, closed: bool) -> None:
    everything = list(parts(pattern.node))
    _refuse(
        not closed and any(isinstance(part, End) for part in everything),
        "a pattern over a stream cannot use $, because a stream has no last row",
        "leave out $, or use WITHIN to bound the match.",
    )
    for part in everything:
        if isinstance(part, Repeat):
            _refuse(
                part.least < 0 or (part.most is not None and part.most < max(part.least, 1)),
                f"the quantifier {{{part.least},{part.most}}} is not valid",
                "write {n,m} with n up to m, and m at least 1.",
            )
            _refuse(
                isinstance(_bare(part.part), Absent),
                "a quantifier is not allowed after NOT",
                "leave out the quantifier: NOT already covers any number of rows.",
            )
        if isinstance(part, Permute):
            _refuse(
                any(isinstance(inner, Absent) for inner in parts(part)),
                "NOT is not allowed inside PERMUTE",
                "write out the permutations as alternatives with |.",
            )


def _bare(node: Node) -> Node:
    while isinstance(node, Sequence | Choice) and len(node.parts) == 1:
        node = node.parts[0]
    return node


def _check_absent(pattern: Pattern, program: Program) -> None:
    absent = [s for s in program.instructions if isinstance(s, instructions.SkipRows | SkipRest)]
    met: Callable[[int], bool] = lambda at: any(  # noqa: E731
        program.instructions[i] in absent for i in program.before_taking(at)
    )
    _refuse(
        bool(absent) and met(program.entry),
        "a pattern cannot begin with NOT",
        "begin with a variable that matches a row, such as A in A NOT C B.",
    )
    _refuse(
        any(met(step.next) for step in absent),
        "NOT is not allowed next to another NOT",
        "define one variable for both conditions, joined with OR.",
    )
    _refuse(
        any(isinstance(step, SkipRest) for step in absent) and pattern.within_us is None,
        "NOT at the end of a pattern requires WITHIN",
        "add WITHIN INTERVAL … after the pattern, to limit how long the row must be absent.",
    )


def _check_modes(pattern: Pattern) -> None:
    _refuse(
        pattern.within_us is not None and pattern.within_us <= 0,
        "the WITHIN interval must be greater than zero",
        "write an interval such as INTERVAL '10' MINUTE.",
    )
    _refuse(
        pattern.rows is RowsPerMatch.UNMATCHED
        and any(isinstance(part, Exclude) for part in parts(pattern.node)),
        "WITH UNMATCHED ROWS cannot be used together with {- … -}",
        "leave out one of the two.",
    )
    if pattern.selection is Selection.ANY:
        _refuse(
            pattern.within_us is None,
            "SKIP TILL ANY requires WITHIN",
            "add WITHIN INTERVAL … before SKIP TILL ANY, so that its matches end.",
        )
        _refuse(
            pattern.skip.to != "to next row",
            f"SKIP TILL ANY cannot be used with AFTER MATCH SKIP {pattern.skip.to.upper()}",
            "use AFTER MATCH SKIP TO NEXT ROW, or leave it out.",
        )


def _check_skip(pattern: Pattern, program: Program) -> None:
    name = pattern.skip.name
    if name is None:
        return
    names = set(dict(pattern.subsets).get(name, (name,)))
    to_first = pattern.skip.to == "to first"
    first = program.may_be_first(names) if to_first else program.may_be_only_first(names)
    said = f"AFTER MATCH SKIP {pattern.skip.to.upper()} {name}"
    _refuse(
        not program.always_takes(names),
        f"{said} is not allowed: {name} may match no row",
        f"skip to a variable that is in every match, or make {name} mandatory.",
    )
    _refuse(
        first,
        f"{said} is not allowed: it may return to the first row of the match",
        "use AFTER MATCH SKIP TO NEXT ROW, or skip to a later variable.",
    )


def _check_names(pattern: Pattern) -> None:
    known, subsets = variables(pattern.node), dict(pattern.subsets)
    asked = [name for name, _ in pattern.conditions]
    asked += [member for members in subsets.values() for member in members]
    for name in asked:
        _refuse(
            name not in known,
            f"the pattern has no variable {name}",
            f"available variables: {', '.join(sorted(known))}.",
        )
    for name in subsets:
        _refuse(
            name in known,
            f"{name} cannot be a SUBSET: it is already a pattern variable",
            "give the SUBSET another name.",
        )


def _check_expressions(pattern: Pattern, mistakes: Mistakes) -> None:
    names = {*variables(pattern.node), *(name for name, _ in pattern.subsets), None}
    columns = {column: i for i, column in enumerate(pattern.columns)}
    scope = ExpressionCompiler(columns, TrailSlots(dict(pattern.subsets)))
    for variable, condition in pattern.conditions:
        with mistakes.noted():
            _check_condition(variable, condition)
    for name, expression in (*pattern.conditions, *pattern.measures):
        with mistakes.noted():
            for leaf in leaves(expression):
                _refuse(
                    _asked(leaf) not in names,
                    f"{name} refers to {_asked(leaf)}, which is not a pattern variable",
                    f"available variables: {', '.join(sorted(str(n) for n in names if n))}.",
                )
            scope.closure(expression)  # refuses unknown functions


def _check_condition(variable: str, condition: Expression) -> None:
    for leaf in leaves(condition):
        _refuse(
            _final(leaf),
            f"the condition of {variable} cannot use FINAL: the match is not complete yet",
            "use FINAL in MEASURES only.",
        )
        _refuse(
            isinstance(leaf, MatchId),
            f"the condition of {variable} cannot use MATCH_ID(): the match is not complete yet",
            "use MATCH_ID() in MEASURES only.",
        )


def _final(leaf: Expression) -> bool:
    if isinstance(leaf, Value | Classifier):
        return leaf.place.final
    return isinstance(leaf, MatchAggregate) and leaf.final


def _asked(leaf: Expression) -> str | None:
    if isinstance(leaf, Value | Classifier):
        return leaf.place.name
    return leaf.name if isinstance(leaf, MatchAggregate) else None
