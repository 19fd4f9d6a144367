"""Regular expressions that mean the same in Java and in DuckDB.

A pattern is read word by word. What both engines read alike is kept, what they read differently
(a dot and a dollar beside the ends of lines, \\d and \\w) is written out, and everything else is
refused: lookaround, back references, flags, possessive quantifiers, classes that exclude.
Whether a text has a match does not depend on how a match is searched for. What is matched does,
where a group is repeated or a match may be empty, so such patterns are refused where it is used.
"""

from __future__ import annotations

import re

from headrace.certified.typed import not_available
from headrace.core.errors import BadQuery

_LINE_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_WORD = re.compile(
    r"""(?P<class>\[(?:[A-Za-z0-9]-[A-Za-z0-9]|[A-Za-z0-9_\ /:.,@])+-?\])
    | (?P<escape>\\[dw.\-/\\^$|?*+()\[\]{}])
    | (?P<dot>\.)
    | (?P<start>\^(?![*+?{]))
    | (?P<end>\$(?![*+?{]))
    | (?P<group>\((?:\?:)?(?![*+?{])|\)|\|(?![*+?{]))
    | (?P<repeat>(?:[*+?]|\{\d{1,3}(?:,\d{0,3})?\})\??(?![*+?{]))
    | (?P<plain>[^\\^$.|?*+()\[\]{}\x00-\x1f\x7f\x85\u2028\u2029])""",
    re.VERBOSE,
)
_WRITTEN = {
    "dot": f"[^{_LINE_ENDS}]",
    "end": rf"(?:\r\n|[{_LINE_ENDS}])?\z",
    r"\d": "[0-9]",
    r"\w": "[A-Za-z0-9_]",
}

_MATCHED = "RLIKE and regexp_like, which do not use the matched text, take more patterns."


def certified_pattern(pattern: str, *, matched: bool = False) -> str:
    """The pattern for DuckDB; with `matched`, for a use of what is matched.

    >>> certified_pattern(r"^/shoes/\\d+")
    '^/shoes/[0-9]+'
    """
    written, place, word = "", 0, ""
    while place < len(pattern):
        found = _WORD.match(pattern, place)
        if found is None:
            raise not_available(
                f"'{pattern[place]}' at position {place + 1} of the pattern '{pattern}'"
            )
        repeated = found.lastgroup == "repeat" and word == ")"
        if matched and (repeated or found.lastgroup == "end"):
            raise not_available(f"'{word}{found.group()}' in the pattern '{pattern}'", _MATCHED)
        word = found.group()
        written += _WRITTEN.get(found.lastgroup or "", _WRITTEN.get(word, word))
        place = found.end()
    try:
        re.compile(pattern)
    except re.error as error:
        raise BadQuery(f"the pattern '{pattern}' is not valid", detail=str(error)) from error
    if matched and re.search(pattern, "") is not None:
        raise not_available(f"the pattern '{pattern}', which matches an empty text,", _MATCHED)
    return written
