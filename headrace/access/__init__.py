"""Who may do what: users, their tokens and grants, sessions of browsers, and the audit log."""
