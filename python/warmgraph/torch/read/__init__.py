"""Reads calls on tensors: modules, tensors, code of installed packages."""
