"""A tree as a SQL condition, on one line if it fits.

Sigma knows true and false, SQL knows NULL too: `not` of a field that is missing is true in Sigma.
So the operand of NOT is `coalesce(…, false)`, unless it cannot be NULL; all else may be NULL, which
is not true. tests/define/sigma/test_sql.py checks every form on DuckDB and the law of NOT.
"""

from __future__ import annotations

from headrace.define.sigma.columns import FieldColumns
from headrace.define.sigma.tree import (
    AllOf,
    AnyOf,
    Compare,
    Equal,
    Glob,
    Not,
    Present,
    Regex,
    Same,
    Test,
    Tree,
)

WIDTH = 100
_NEVER = -(10**9)  # an indent with which every line fits
_ESCAPE = "!"  # of LIKE; a backslash would have to be doubled twice


def condition(tree: Tree, columns: FieldColumns, indent: int = 0) -> str:
    """The condition, of which lines after the first are indented."""
    line = _line(tree, columns)
    if len(line) + indent <= WIDTH or isinstance(tree, Test):
        return line
    if isinstance(tree, Not):
        inner = condition(tree.part, columns, indent + 2)
        return f"NOT coalesce(\n{' ' * (indent + 2)}{inner}, false)"
    return f"\n{' ' * indent}{_word(tree)} ".join(_parts(tree, columns, indent + 4))


def _word(tree: AllOf | AnyOf) -> str:
    return "AND" if isinstance(tree, AllOf) else "OR"


def _parts(tree: AllOf | AnyOf, columns: FieldColumns, indent: int) -> list[str]:
    """The parts, each once, with equal ones of a column as one IN."""
    lists = _lists(tree, columns) if isinstance(tree, AnyOf) else {}
    found: dict[str, None] = {}
    for part in tree.parts:
        subject, value = _equality(part, columns)
        if value is not None and len(lists.get(subject, ())) > 1:
            found[f"{subject} IN ({', '.join(lists[subject])})"] = None
            continue
        inner = condition(part, columns, indent)
        several = isinstance(part, AllOf | AnyOf) and len(_parts(part, columns, _NEVER)) > 1
        found[f"({inner})" if several else inner] = None
    return list(found)


def _lists(tree: AnyOf, columns: FieldColumns) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for subject, value in (_equality(part, columns) for part in tree.parts):
        values = found.setdefault(subject, [])
        values += [value] if value is not None and value not in values else []
    return found


def _equality(tree: Tree, columns: FieldColumns) -> tuple[str, str | None]:
    """The two sides of a test for equality; no value if it is another one."""
    match tree:
        case Test(field=field, check=Equal(value=value)):
            return columns.sql(field), _constant(value, columns.type(field))
        case Test(field=field, check=Glob(parts=parts, cased=cased)):
            if len(parts) <= 1 and all(parts):
                return _folded(columns.sql(field), "".join(map(str, parts)), cased)
    return "", None


def _line(tree: Tree, columns: FieldColumns) -> str:
    if isinstance(tree, Test):
        subject, value = _equality(tree, columns)
        return _test(tree, columns) if value is None else f"{subject} = {value}"
    if isinstance(tree, Not):
        return _negated(tree.part, columns)
    return f" {_word(tree)} ".join(_parts(tree, columns, _NEVER))


def _negated(part: Tree, columns: FieldColumns) -> str:
    if isinstance(part, Test) and isinstance(part.check, Present):
        return _test(Test(part.field, Present(not part.check.there)), columns)
    line = _line(part, columns)
    return f"NOT ({line})" if _total(part) else f"NOT coalesce({line}, false)"


def _total(tree: Tree) -> bool:
    """Whether it is never NULL."""
    if isinstance(tree, Test):
        return isinstance(tree.check, Present)
    return isinstance(tree, Not) or all(_total(part) for part in tree.parts)


def _test(test: Test, columns: FieldColumns) -> str:
    column = columns.sql(test.field)
    match test.check:
        case Present(there=there):
            return f"{column} IS NOT NULL" if there else f"{column} IS NULL"
        case Compare(operator=operator, value=value):
            text = columns.type(test.field) == "STRING"
            return f"{f'CAST({column} AS DOUBLE)' if text else column} {operator} {value}"
        case Regex(pattern=pattern):
            return f"{column} RLIKE {literal(pattern)}"
        case Same(field=field):
            return f"{column} = {columns.sql(field)}"
        case Glob() as glob:
            return _like(column, glob)
        case Equal(value=value):
            return f"{column} = {_constant(value, columns.type(test.field))}"


def _like(column: str, glob: Glob) -> str:
    if glob.parts == (None,):
        return f"{column} IS NOT NULL"
    signs = {None: "%", "": "_"}
    pattern = "".join(signs.get(part) or _escaped(str(part)) for part in glob.parts)
    subject, text = _folded(column, pattern, glob.cased)
    plain = not any(sign in str(part or "") for part in glob.parts for sign in "%_!\\")
    return f"{subject} LIKE {text}" + ("" if plain else f" ESCAPE '{_ESCAPE}'")


def _escaped(text: str) -> str:
    return "".join(_ESCAPE + letter if letter in f"%_{_ESCAPE}" else letter for letter in text)


def _folded(column: str, text: str, cased: bool) -> tuple[str, str]:
    """Column and text, in lower case where the text has letters and their case says nothing."""
    if cased or text.lower() == text.upper():
        return column, literal(text)
    # What is beyond ASCII is folded by the one who folds the column.
    return f"lower({column})", literal(
        text.lower()
    ) if text.isascii() else f"lower({literal(text)})"


def _constant(value: int | float | bool, type: str) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return literal(text) if type == "STRING" else text


def literal(text: str) -> str:
    """A text as SQL.

    >>> print(literal("it's C:\\\\"))
    'it''s C:\\\\'
    """
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return "'" + escaped.replace("\n", "\\n").replace("\r", "\\r") + "'"
