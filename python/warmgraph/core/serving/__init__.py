"""Replays entries in processes that do not have the functions' code."""
