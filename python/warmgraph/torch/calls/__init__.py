"""The function of PyTorch behind a wrapper: replays stored entries, and records the others."""
