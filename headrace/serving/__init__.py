"""The store, and how it merges generations with later epochs and answers."""
