"""libwarmgraph as Python calls it, its log and its command, forks, and where frameworks register."""
