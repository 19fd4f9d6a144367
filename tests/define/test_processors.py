"""What a project's file gives as processors, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.core.errors import BadDefinition
from headrace.core.schema import Type
from headrace.define.definitions import ProcessorCall, QueryDefinition
from headrace.define.processors import load_processors, processor
from headrace.define.statements import read_statements

TEXT = """
from headrace import processor

@processor("user STRING, n BIGINT", name="counted")
class Count:
    def init(self):
        return {"n": 0}

    def on_event(self, state, event, timers):
        return ()

class Plain(Count):
    pass
"""


def test_a_marked_class_is_found_by_its_name_and_its_heirs_are_not(tmp_path: Path) -> None:
    path = tmp_path / "functions.py"
    path.write_text(TEXT)
    (found,) = load_processors(path).values()
    assert found.name == "counted"
    assert found.outputs == (("user", Type("STRING")), ("n", Type("BIGINT")))


def test_two_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "functions.py"
    again = TEXT.replace("class Count", "class Again").replace("Plain(Count)", "Plain")
    path.write_text(TEXT + again)
    with pytest.raises(BadDefinition, match="the processor 'counted' is defined twice"):
        load_processors(path)


def test_a_processor_takes_events() -> None:
    with pytest.raises(BadDefinition, match=r"'Nothing' has no init\(\)"):
        processor("n BIGINT")(type("Nothing", (), {}))


@pytest.mark.parametrize("columns", ["n", "", "_n BIGINT", "n BIGINT,, m INT"])
def test_its_columns_have_names_and_types(columns: str) -> None:
    with pytest.raises(BadDefinition, match="is not a column name followed by a type"):
        processor(columns)


@pytest.mark.parametrize("keys", ["user, url", "(user, url)"])
def test_a_call_says_the_stream_and_its_keys(keys: str) -> None:
    text = f"CREATE STREAM s AS SELECT * FROM Count(TABLE(clicks) PARTITION BY {keys})"
    (found,) = read_statements(text, "a.sql")
    assert isinstance(found, QueryDefinition)
    assert found.query == "SELECT * FROM clicks"
    assert found.processor == ProcessorCall("Count", ("user", "url"))


def test_a_call_without_keys_is_refused() -> None:
    with pytest.raises(BadDefinition, match="expected PARTITION BY"):
        read_statements("CREATE STREAM s AS SELECT * FROM Count(TABLE(clicks))", "a.sql")
