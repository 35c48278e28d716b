"""Entries that are replayed without the code that they were recorded of."""
