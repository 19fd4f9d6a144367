"""Definitions -> plan: pure passes, nothing is done. explain, difference and fingerprint live
here.
"""
