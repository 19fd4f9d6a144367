"""The serving store: epochs, generations, reads, subscriptions and alerts."""
