"""cache_compile and the functions that it wraps; calls on arrays, later calls, refusals."""
