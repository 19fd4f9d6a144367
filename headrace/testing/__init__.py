"""Shipped to users: transcripts of tests of views, and the reference interpreter.

>>> story = '''
... name: two clicks of one user
... view: SELECT user, count(*) AS n FROM clicks GROUP BY user
... steps:
...   - events: [{at: 1s, user: a}, {at: 2s, user: a}]
...   - expect: {a: 2}
... '''
>>> play(loads(story), ReferenceEngine())
"""

from headrace.testing.compare import differences
from headrace.testing.play import Engine, TranscriptFailed, play
from headrace.testing.reference_engine import ReferenceEngine
from headrace.testing.transcript import Transcript, load, loads

__all__ = [
    "Engine",
    "ReferenceEngine",
    "Transcript",
    "TranscriptFailed",
    "differences",
    "load",
    "loads",
    "play",
]
