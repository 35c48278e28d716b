"""Reads the inputs of a call: its values as facts, the code that it may run, and the checks before a later call."""
