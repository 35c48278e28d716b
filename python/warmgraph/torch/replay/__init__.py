"""Binds a call to an entry and launches it; tests and launches later calls; preloads entries before the first call."""
