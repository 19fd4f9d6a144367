"""log[b, …) -> epochs of partials. Never imports batch: they meet only in serving."""
