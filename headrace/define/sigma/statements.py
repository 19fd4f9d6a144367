"""The SQL of one rule: its streams, if it needs any, and its CREATE RULE.

An event rule is a rule over the stream. Counts are thresholds. `temporal_ordered` is a pattern of
the rules in their order and `temporal` one of their permutations; both skip other events. Where a
key is another column for each rule, a stream before it takes the key of the first rule that an
event fits. tests/define/sigma/*.sql hold what is made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from headrace.core.time import DAY, HOUR, MINUTE, SECOND
from headrace.define.sigma.columns import FieldColumns, column_of, quoted
from headrace.define.sigma.rules import Correlation, EventRule, SigmaHeader
from headrace.define.sigma.sql import condition
from headrace.define.sigma.tree import Tree, any_of, leaves

PERMUTED_MAX = 6
_WORDS = {"permute", "measures", "define", "subset", "pattern", "initial", "seek"}


@dataclass(slots=True)
class RuleWriter:
    """Writes rules over one stream; names are given once."""

    stream: str
    time: str
    columns: FieldColumns
    taken: set[str] = field(default_factory=lambda: {"alerts"})

    def __post_init__(self) -> None:
        self.taken.add(self.stream.lower())

    # One kind of rule each

    def event_rule(self, rule: EventRule) -> tuple[str, list[str]]:
        """The name of the rule and its statements."""
        name = self.named(rule.about.name)
        fields = [quoted(self.columns.name(each)) for each in rule.fields]
        fields = list(dict.fromkeys([*fields, quoted(self.time)]))
        where = condition(rule.tree, self.columns, 2)
        source = f"{self.stream}\nWHERE {where}"
        return name, [_rule(name, ", ".join(fields) if rule.fields else "*", source, rule.about)]

    def correlation(self, rule: Correlation, base: dict[str, EventRule]) -> tuple[str, list[str]]:
        name = self.named(rule.about.name)
        source, statements = self.stream, list[str]()
        keys = {key: self.key(rule, key, base) for key in (*rule.group_by, *_counted(rule))}
        if any(isinstance(key, dict) for key in keys.values()):
            source = self.named(f"{name}_events")
            statements.append(self.keyed(source, keys, base))
        known = {key: self.key_name(key, said, base) for key, said in keys.items()}
        per = [known[key] for key in rule.group_by]
        if rule.type in ("event_count", "value_count"):
            made = self.named(f"{name}_reached")
            counted = f"DISTINCT {known[rule.field]}" if rule.field else "*"
            statements.append(self.threshold(made, source, rule, counted, per, base))
        else:
            made = self.named(f"{name}_found")
            statements.append(self.pattern(made, source, rule, per, base))
        return name, [*statements, _rule(name, "*", made, rule.about)]

    # Their parts

    def threshold(
        self, name: str, source: str, rule: Correlation, counted: str, per: list[str],
        base: dict[str, EventRule],
    ) -> str:  # fmt: skip
        by = f" PER {', '.join(per)}" if per else ""
        where = condition(any_of([each.tree for each in base.values()]), self.columns, 2)
        return (
            f"CREATE STREAM {name} AS\n"
            f"count({counted}) {rule.operator} {rule.least} WITHIN {interval(rule.within_us)}{by}\n"
            f"FROM {source}\nWHERE {where};"
        )

    def pattern(
        self, name: str, source: str, rule: Correlation, per: list[str], base: dict[str, EventRule]
    ) -> str:
        variables = dict(zip(base, _variables([r.about.name for r in base.values()]), strict=True))
        steps = [variables[each] for each in rule.rules]
        if rule.type == "temporal":
            steps = list(dict.fromkeys(steps))
        if rule.type == "temporal" and len(steps) > PERMUTED_MAX:
            raise ValueError(
                f"the correlation expects {len(steps)} rules in any order, which is supported for "
                f"at most {PERMUTED_MAX}; use temporal_ordered, or split it"
            )
        any_order = rule.type == "temporal" and len(steps) > 1
        said = f"PERMUTE({', '.join(steps)})" if any_order else " ".join(steps)
        by = f"PARTITION BY {', '.join(per)} " if per else ""
        defined = [
            f"    {variables[key]} AS {condition(each.tree, self.columns, 6)}"
            for key, each in base.items()
        ]
        time = quoted(self.time)
        return "\n".join(
            [
                f"CREATE STREAM {name} AS",
                f"SELECT * FROM {source} MATCH_RECOGNIZE (",
                f"  {by}ORDER BY {time}",
                f"  MEASURES first({time}) AS began, last({time}) AS ended",
                f"  PATTERN ({said}) WITHIN {interval(rule.within_us)} SKIP TILL NEXT",
                "  DEFINE",
                ",\n".join(defined) + ");",
            ]
        )

    # Keys

    def key(self, rule: Correlation, key: str, base: dict[str, EventRule]) -> str | dict[str, str]:
        """The column of a key, or that of each rule, by the rule's reference."""
        fields = rule.aliases.get(key, {})
        for reference in fields:
            if not any(reference in (each, *base[each].about.keys) for each in base):
                raise ValueError(
                    f"the alias '{key}' refers to '{reference}', which is not in rules"
                )
        found = {each: self.columns.name(_aliased(fields, key, base, each)) for each in base}
        columns = set(found.values())
        return found if len(columns) > 1 else columns.pop()

    def key_name(self, key: str, said: str | dict[str, str], base: dict[str, EventRule]) -> str:
        if isinstance(said, str):
            return quoted(said)
        name = column_of(key)
        used = {*self.read(said, base), self.time.lower()}
        return quoted(f"{name}_key" if name.lower() in used else name)

    def read(self, said: str | dict[str, str], base: dict[str, EventRule]) -> dict[str, str]:
        """The columns that the rules and a key read, by their names in lower case."""
        fields = [test.field for each in base.values() for test in leaves(each.tree)]
        fields += [said] if isinstance(said, str) else said.values()
        return {column_of(name).lower(): self.columns.sql(name) for name in fields}

    def keyed(
        self, name: str, keys: dict[str, str | dict[str, str]], base: dict[str, EventRule]
    ) -> str:
        """The stream with a column for each key that is another for each rule."""
        read = {self.time.lower(): quoted(self.time)}
        items = []
        for key, said in keys.items():
            read |= self.read(said, base)
            if isinstance(said, dict):
                items.append(f"{self.case(said, base)} AS {self.key_name(key, said, base)}")
        trees: list[Tree] = [each.tree for each in base.values()]
        return (
            f"CREATE STREAM {name} AS\nSELECT {', '.join(read.values())},\n  "
            + ",\n  ".join(items)
            + f"\nFROM {self.stream}\nWHERE {condition(any_of(trees), self.columns, 2)};"
        )

    def case(self, said: dict[str, str], base: dict[str, EventRule]) -> str:
        whens = [
            f"\n    WHEN {condition(base[each].tree, self.columns, 6)} THEN {quoted(column)}"
            for each, column in said.items()
        ]
        return f"CASE{''.join(whens)} END"

    def named(self, text: str) -> str:
        """A unique name."""
        plain = _slug(text)
        name, number = plain, 2
        while name in self.taken:
            name, number = f"{plain}_{number}", number + 1
        self.taken.add(name)
        return name


def interval(us: int) -> str:
    """
    >>> interval(7_200_000_000), interval(60_000_000)
    ('INTERVAL 2 HOURS', 'INTERVAL 1 MINUTE')
    """
    units = ((DAY, "DAY"), (HOUR, "HOUR"), (MINUTE, "MINUTE"), (SECOND, "SECOND"))
    size, word = next(each for each in units if us % each[0] == 0)
    return f"INTERVAL {us // size} {word}{'S' if us != size else ''}"


def _rule(name: str, items: str, source: str, about: SigmaHeader) -> str:
    severity = f"\nSEVERITY '{about.level.value}'" if about.level else ""
    return f"CREATE RULE {name} AS\nSELECT {items} FROM {source}{severity};"


def _counted(rule: Correlation) -> Iterator[str]:
    if rule.field:
        yield rule.field


def _aliased(fields: dict[str, str], key: str, base: dict[str, EventRule], each: str) -> str:
    known = (each, *base[each].about.keys)
    return next((fields[reference] for reference in known if reference in fields), key)


def _variables(names: list[str]) -> list[str]:
    """A variable for each rule, named as it is."""
    found: list[str] = []
    for name in map(_slug, names):
        free = name if quoted(name) == name and name not in _WORDS else f"{name}_event"
        found.append(free if free not in found else f"{free}_{len(found) + 1}")
    return found


def _slug(text: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
    return name if name and not name[0].isdigit() else f"rule_{name}".rstrip("_")
