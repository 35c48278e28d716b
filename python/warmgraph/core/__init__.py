"""The library, caches and their configuration. The halves for arrays and for PyTorch both use this part, which knows no framework."""
