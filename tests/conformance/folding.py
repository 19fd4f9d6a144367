"""The engine under the cases: the compiler's plan, Spark's columns, and the fold that Spark's tasks
run, here in this process, so that a case can be cut in many ways in little time.

tests/transcripts runs the same fold within Spark's tasks, epochs and builds.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from conformance.cases import Case
from headrace.carry.match import match
from headrace.compile.carry import Carried
from headrace.compile.matched import matched_stream
from headrace.compile.passes import HIDDEN_DDL
from headrace.compile.resolve import Resolved
from headrace.core.errors import HeadraceError
from headrace.core.event import CUT, DISORDERED, KEY, SEQ, STATE, TIME, TIMER
from headrace.core.time import SECOND
from headrace.define.dialect import parse_query
from headrace.define.statements import read_statements
from headrace.testing.short import ORIGIN_US, shown_value

DDL = f"k STRING, t TIMESTAMP, v STRING, x BIGINT, {HIDDEN_DDL}"
LONG = 100_000
Answer = list[list[Any]]
