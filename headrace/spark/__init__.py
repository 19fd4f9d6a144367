"""The engine room: Java, the session, the fence around user SQL, and the process that runs it."""
