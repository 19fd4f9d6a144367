"""The vectorised kernel: partials of views from decoded events, in the process of a task."""
