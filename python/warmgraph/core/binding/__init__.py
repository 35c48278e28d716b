"""The Python binding of libwarmgraph, its log and its command, forks, and the registry of frameworks."""
