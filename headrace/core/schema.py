"""The types that an event's fields may have, and their names in other systems.

A type is a small tree: a scalar by its name, or an array, map or struct of other types.
core/storage.py says how a value of a type is stored. tests/core/test_schema.py checks the round
trip of each type through its text.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.core.errors import BadDefinition
from headrace.core.origin import Origin

WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_NUMERIC = {*WHOLE, "FLOAT", "DOUBLE"}
ARRAY, MAP, STRUCT, DECIMAL = "ARRAY", "MAP", "STRUCT", "DECIMAL"


@dataclass(frozen=True, slots=True)
class Field:
    """A part of a type: a field of a STRUCT, the element of an ARRAY, the key or value of a MAP."""

    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Type:
    """A scalar by its name, a DECIMAL with its size, or an ARRAY, MAP or STRUCT of other types.

    >>> Type.parse("varchar(20)").name, Type.parse("array<struct<a: bigint>>").spark
    ('STRING', 'ARRAY<STRUCT<a: BIGINT>>')
    """

    name: str
    fields: tuple[Field, ...] = ()
    size: tuple[int, int] | None = None  # of a DECIMAL: its precision and its scale

    @staticmethod
    def parse(text: str) -> Type:
        """Read the type of an event's field as SQL writes it, in any spelling that Spark knows."""
        from headrace.core.type_text import parse_type  # it makes types, so it comes after this

        return parse_type(text)

    @staticmethod
    def of(text: str) -> Type:
        """Read the type of any expression, as Spark's analyser and a plan write it."""
        from headrace.core.type_text import computed_type

        return computed_type(text)

    @staticmethod
    def array_of(element: Type) -> Type:
        return Type(ARRAY, (Field("element", element),))

    @staticmethod
    def map_of(value: Type, key: Type | None = None) -> Type:
        """A map of texts to values, as a JSON object is; or of other keys."""
        return Type(MAP, (Field("key", key or Type("STRING")), Field("value", value)))

    @staticmethod
    def struct_of(*fields: tuple[str, Type]) -> Type:
        return Type(STRUCT, tuple(Field(name, type) for name, type in fields))

    @staticmethod
    def decimal_of(precision: int, scale: int) -> Type:
        return Type(DECIMAL, size=(precision, scale))

    @property
    def nested(self) -> bool:
        """Whether its values are lists or objects."""
        return self.name in {ARRAY, MAP, STRUCT}

    @property
    def element(self) -> Type:
        """The type of an array's elements, or of a map's values."""
        return self.fields[-1].type

    @property
    def key(self) -> Type:
        """The type of a map's keys."""
        return self.fields[0].type

    @property
    def spark(self) -> str:
        match self.name:
            case "ARRAY":
                return f"ARRAY<{self.element.spark}>"
            case "MAP":
                return f"MAP<{self.key.spark}, {self.element.spark}>"
            case "STRUCT":
                inner = (f"{_quoted(field.name)}: {field.type.spark}" for field in self.fields)
                return f"STRUCT<{', '.join(inner)}>"
            case "DECIMAL" if self.size:
                return f"DECIMAL({self.size[0]},{self.size[1]})"
        return self.name

    @property
    def numeric(self) -> bool:
        return self.name in _NUMERIC

    def has(self, *names: str) -> bool:
        """Whether it is one of these types, or a part of it is."""
        return self.name in names or any(field.type.has(*names) for field in self.fields)


def nested(type: str) -> bool:
    """Whether values of an answer's type are lists or objects, which the store keeps as JSON."""
    return type.startswith(("ARRAY<", "MAP<", "STRUCT<"))


def _quoted(name: str) -> str:
    # Python's identifiers have characters that are not part of a name in SQL.
    return name if name.isascii() and name.isidentifier() else "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True, slots=True)
class ComputedExpression:
    """The expression of a computed column, in Spark SQL over the stored columns of its event."""

    sql: str
    origin: Origin = field(default=Origin("plan", 1), compare=False)


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column. Where its value is not simply the field of its name, it says how an event
    holds it: at a `path`, or as a time in a `format`. The `default` is JSON, and stands for what is
    missing or null. A column that is `generated` is in no event: it is computed when it is read.
    """

    name: str
    type: Type
    nullable: bool = True
    format: str | None = None
    path: str | None = None
    default: str | None = None
    generated: ComputedExpression | None = None

    @property
    def clauses(self) -> str:
        """What is declared of it beside its name, type and NOT NULL."""
        said = [f"GENERATED ALWAYS AS ({self.generated.sql})"] if self.generated else []
        said += [f"FORMAT '{self.format}'"] if self.format is not None else []
        said += [f"FROM '{self.path}'"] if self.path is not None else []
        said += [f"DEFAULT {self.default}"] if self.default is not None else []
        return " ".join(said)


def not_in_csv(column: Column) -> str | None:
    """Why a CSV event cannot hold the column, if it cannot."""
    if column.path is not None:
        return f"the column '{column.name}' has a path, but CSV events have no paths"
    if column.type.nested or column.type.name == "VARIANT":
        type = column.type.name
        return f"the type {type} of column '{column.name}' is not supported in CSV events"
    return None


@dataclass(frozen=True, slots=True)
class Schema:
    """The declared columns of a stream or table, in order; names are unique whatever their case."""

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for column in self.columns:
            if column.name.lower() in seen:
                raise BadDefinition(f"the column '{column.name}' is declared twice")
            seen.add(column.name.lower())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def find(self, name: str) -> Column | None:
        return next((c for c in self.columns if c.name.lower() == name.lower()), None)

    @property
    def stored(self) -> Schema:
        """The columns that log and master have."""
        return Schema(tuple(c for c in self.columns if c.generated is None))

    @property
    def computed(self) -> tuple[Column, ...]:
        """The columns that are computed where they are read."""
        return tuple(c for c in self.columns if c.generated is not None)

    @property
    def spark_ddl(self) -> str:
        return ", ".join(f"`{c.name}` {c.type.spark}" for c in self.columns)

    @property
    def stored_ddl(self) -> str:
        """The stored columns as log and master have them: a VARIANT is its JSON text."""
        kinds = {"VARIANT": "STRING"}
        pairs = ((c.name, c.type.spark) for c in self.stored.columns)
        return ", ".join(f"`{name}` {kinds.get(type, type)}" for name, type in pairs)
