"""Calls under gradients: a forward and a backward half."""
