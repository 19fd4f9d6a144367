"""What the user says: settings, SQL and Python, read into definitions with their origin. Never
acts.
"""
