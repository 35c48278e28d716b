"""The library, caches and their configuration: both halves of the package use this part. It knows no framework."""
