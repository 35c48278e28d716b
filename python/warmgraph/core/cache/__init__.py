"""Python classes over the C interface's caches and functions, and the caches that wrappers share."""
