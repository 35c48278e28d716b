"""cache_compile and the functions that it wraps: calls on arrays, faster checks for later calls, and refused calls."""
