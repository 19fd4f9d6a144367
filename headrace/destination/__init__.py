"""The destinations of sinks and notifications: one kind per module, from its SQL to its delivery.
Nothing here decides what is sent, or when.
"""
