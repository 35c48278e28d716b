"""Plain values: values that a text describes completely."""
from __future__ import annotations

import hashlib
from typing import Any

KINDS = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))
_LONGEST_INT = 10_000  # in bits; Python refuses to write longer numbers as decimals


def shortened(text: str, longest: int) -> str:
    """The text in ASCII. A longer text is cut, and its digest is appended."""
    if not text.isascii():
        text = text.encode("ascii", "backslashreplace").decode()
    if len(text) > longest:
        text = f"{text[:longest - 80]}... sha256 {hashlib.sha256(text.encode()).hexdigest()}"
    return text


def text_of(value: Any) -> str:
    """The value as its plain base type writes it, because a subclass may write less."""
    kind: type = type(value)
    base: Any = kind if kind in KINDS else next(one for one in KINDS if isinstance(value, one))
    name = kind.__name__ if kind is base else f"{kind.__module__}.{kind.__qualname__}"
    if base is int and int.bit_length(value) > _LONGEST_INT:
        return f"{name} {int.__format__(value, 'x')}"
    return f"{name} {base.__repr__(value)}"
