"""Side-by-side benchmarks: each is a ratio in one run, and answers are compared before a time
counts.
"""
