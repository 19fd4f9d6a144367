"""The examples in docstrings run, in every module."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import warnings

import pytest

import headrace

# Importing these is running them.
_PROGRAMS = {"headrace.__main__"}
MODULES = sorted(
    found.name
    for found in pkgutil.walk_packages(headrace.__path__, "headrace.")
    if found.name not in _PROGRAMS
)


@pytest.mark.parametrize("name", ["headrace", *MODULES])
def test_examples_of_a_module_run(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0
