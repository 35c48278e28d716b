"""The library, what is kept of a cache, and its configuration: what each half of the package builds on. It knows no framework."""
