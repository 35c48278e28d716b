"""Binds a call to an entry and launches it; later calls; what is restored before the first call."""
