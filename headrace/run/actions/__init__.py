"""What notifications do in the world: one action a file, one protocol.

An action delivers at least once: when `deliver` returns, the notices are where they belong; if it
raises, they are tried again later, unless it raises `Undeliverable`. After a kill a notice may come
again, and its key says so. tests/run/test_actions.py checks each action.
"""
