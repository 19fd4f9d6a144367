"""Authentication and authorization: users, tokens, grants, browser sessions and the audit log."""
