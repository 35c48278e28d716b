"""The package's own arrays: devices, memory, programs, and the run that enqueues work on them."""
