"""Reads calls on PyTorch's tensors: modules, tensors, and the code of installed packages."""
