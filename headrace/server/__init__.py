"""A long-lived server to which a team submits projects as jobs."""
