"""The only room that acts: apply, supervise, recover, schedule."""
