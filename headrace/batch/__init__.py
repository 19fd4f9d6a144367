"""master[0, b) -> generation. Never imports speed: they meet only in serving."""
