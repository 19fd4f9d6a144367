"""Types that all rooms share: errors, origin, position, time, schema, aggregates. Imports no other
room.
"""
