"""HTTP: one error shape, one table of routes, and a client that speaks to them."""
