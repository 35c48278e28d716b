"""Binds a call to an entry and launches it; later calls; preloading before the first call."""
