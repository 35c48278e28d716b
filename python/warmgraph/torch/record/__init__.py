"""A miss: the answer, two captures, and their adoption."""
