"""Search: which N next (policy), what is known (cell), and keeping the lanes full (scheduler)."""
