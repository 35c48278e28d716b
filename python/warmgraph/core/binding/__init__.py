"""The Python binding of libwarmgraph: its log, its command, the handling of forks, and the registry of frameworks."""
