"""A regular expression of a rule must be valid in Spark too, which uses Java's.

A pattern that Java cannot read would stop the stream at its first event. Python reads nearly the
same language: what it refuses is refused, and so are the few things that only Python reads.
tests/define/sigma/test_values.py reads the refusals.
"""

from __future__ import annotations

import re
import warnings


def check_regex(pattern: str) -> str:
    """The pattern, if it is valid in Java too; a ValueError says why not.

    >>> check_regex("^svc-[0-9]{3}$")
    '^svc-[0-9]{3}$'
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of nested sets, which are refused below
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"the regular expression '{pattern}' cannot be read: {error}") from error
    if found := _foreign(pattern):
        raise ValueError(
            f"the regular expression '{pattern}' has '{found}', which Spark reads otherwise"
        )
    return pattern


def _foreign(pattern: str) -> str | None:
    """What Java would not read as Python does."""
    # Escaped characters first, so that what is left is syntax; but \Z, \N and \x{…} differ too.
    if odd := re.search(r"(?<!\\)(?:\\\\)*(\\[ZNuUz])", pattern):
        return odd[1]
    plain = re.sub(r"\\.", "..", pattern, flags=re.DOTALL)
    for group in ("(?P", "(?("):
        if group in plain:
            return group
    classes = re.compile(r"\[\^?\]?[^\]]*\]")
    for inside in classes.findall(plain):
        for odd_one in ("[", "&&"):
            if odd_one in inside[1:]:
                return odd_one
    braces = re.sub(r"\{\d+(?:,\d*)?\}", "", classes.sub("", plain))
    return "{" if "{" in braces else None
