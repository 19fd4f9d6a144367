"""The version of Headrace, in the lowest room, because no room imports `headrace` itself."""

__version__ = "0.1.0"
