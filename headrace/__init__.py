"""Headrace: define a view once, in SQL; it is kept exact over all history and fresh to the second.

>>> import headrace
>>> headrace.__version__
'0.1.0'
"""

from headrace.define.functions import function
from headrace.define.processors import processor

__all__ = ["__version__", "function", "processor"]
__version__ = "0.1.0"
