"""The embedded log: segment files in a folder. Only this package opens them."""
