"""Reads what a call depends on: its values as facts, the code that it may run, and what is looked at again before a later call."""
