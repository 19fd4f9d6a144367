"""Audits: the same definition over the same events in a second engine. Shares no code with batch,
speed or the merge; it reads only what they have written.
"""
