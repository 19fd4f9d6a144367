"""A project's Python file gives its marked functions to SQL, or says where it is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.core.errors import BadDefinition, BadProject
from headrace.define.functions import load_functions
from headrace.spark.functions import register_functions

HEAD = "from headrace.define.functions import function\n"
ONE = "@function(takes=['STRING'], returns='STRING'{more})\ndef {name}(text):\n    return text\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "functions.py"
    path.write_text(HEAD + text)
    return path


def test_marked_functions_are_found_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = (
        ONE.format(name="b", more="") + ONE.format(name="a", more=", kind='pandas'") + "alias = a\n"
    )
    definitions = load_functions(write(tmp_path, text + "def unmarked(): pass\n"))
    assert [(d.name, d.kind, d.returns.spark) for d in definitions] == [
        ("b", "arrow", "STRING"),
        ("a", "pandas", "STRING"),
    ]
    assert not (tmp_path / "__pycache__").exists()


def test_name_given_twice_is_refused(tmp_path: Path) -> None:
    text = ONE.format(name="shout", more="") + ONE.format(name="other", more=", name='SHOUT'")
    with pytest.raises(BadDefinition) as caught:
        load_functions(write(tmp_path, text))
    assert caught.value.message == "the function 'SHOUT' is defined twice"
    assert str(caught.value.origin) == "functions.py:5"


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("x = (\n", "functions.py cannot be loaded: SyntaxError: '(' was never closed", 2),
        ("\n1 / 0\n", "functions.py cannot be loaded: ZeroDivisionError: division by zero", 3),
        ("import json\njson.loads('x')\n", "functions.py cannot be loaded: JSONDecodeError: ", 3),
        (
            "@function(takes=[], returns='BLOB')\ndef f(): pass\n",
            "functions.py cannot be loaded: ",
            2,
        ),
    ],
)
def test_file_that_fails_is_told_with_its_line(
    tmp_path: Path, text: str, message: str, line: int
) -> None:
    with pytest.raises(BadProject) as caught:
        load_functions(write(tmp_path, text))
    assert caught.value.message.startswith(message)
    assert str(caught.value.origin) == f"functions.py:{line}"


def test_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadProject, match=r"gone\.py cannot be read"):
        load_functions(tmp_path / "gone.py")


@pytest.mark.parametrize("name", ["upper", "Window", "COUNT"])
def test_name_of_a_function_of_spark_is_refused(spark: Any, tmp_path: Path, name: str) -> None:
    functions = load_functions(write(tmp_path, ONE.format(name=name, more="")))
    with pytest.raises(BadDefinition) as caught:
        register_functions(spark.newSession(), functions)
    assert caught.value.message == (
        f"the function '{name}' has the name of a function of Spark SQL, which would be called in "
        "its place"
    )
    assert str(caught.value.origin) == "functions.py:2"
