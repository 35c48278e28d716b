"""Implements a wrapper's calls on PyTorch's tensors: replays stored entries, and records missing entries."""
