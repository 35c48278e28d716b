"""Reads everything that a call depends on: its values as facts, the code that it may run, and the checks before a later call."""
