"""The function of PyTorch behind a wrapper: replays what is stored, records what is not."""
