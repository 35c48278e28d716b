"""Replays entries without the code of their functions."""
