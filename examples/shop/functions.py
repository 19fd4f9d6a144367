"""Functions that shop.sql calls, on whole Arrow columns; batch and speed both call them."""

import pyarrow.compute as pc

from headrace import function


@function(takes=["STRING"], returns="STRING")
def channel(referrer):
    """How a visitor came: by a search, from a social network, or directly."""
    known = pc.fill_null(referrer, "")
    search = pc.match_substring_regex(known, r"//(www\.)?(google|bing|duckduckgo)\.")
    social = pc.match_substring_regex(known, r"//(www\.)?(mastodon|reddit|instagram)\.")
    return pc.if_else(search, "search", pc.if_else(social, "social", "direct"))
