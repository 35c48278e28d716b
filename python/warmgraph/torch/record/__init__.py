"""A miss: the answer, two captures, their adoption."""
