"""Caches and functions as the C interface has them, and the caches that wrappers share."""
