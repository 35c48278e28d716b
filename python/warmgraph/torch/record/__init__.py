"""Handles a miss: answers the call, captures it twice, and stores the graph."""
