"""Java, the Spark session, the allow-lists of SQL, and the worker processes for ad-hoc queries."""
