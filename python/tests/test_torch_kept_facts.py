"""The facts of ten models must equal the facts in kept_facts.txt: if a fact changes, all stored entries miss."""
from __future__ import annotations

import sys

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

import models_of_facts  # noqa: E402


def test_the_facts_of_ten_models_are_the_kept_ones():
    kept = models_of_facts.KEPT.read_text()
    version = kept.partition("\n")[0]
    if version != f"PyTorch {torch.__version__.partition('+')[0]}" or sys.version_info[:2] < (3, 11):
        pytest.skip(f"the facts were kept of {version}, whose modules have other attributes than those of another version")
    assert models_of_facts.facts() == kept  # if the change was intended, run python models_of_facts.py
