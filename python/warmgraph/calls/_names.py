"""Makes names for the library and for the cache folder."""
from __future__ import annotations

import collections
import hashlib
import re
from typing import Iterable

_NAME = re.compile(r"[^A-Za-z0-9._-]")
LONGEST_NAME = 100


def folder_name(text: str) -> str:
    """Converts a text to a valid folder name."""
    name = _NAME.sub("_", text).strip(".-")[:LONGEST_NAME]
    return name or "function"


def binding_names(paths: Iterable[str]) -> dict[str, str]:
    """The library's name for each path: "self.weights.0" for "self.weights[0]". Names that would be equal get different digests."""
    plain = {path: re.sub(r"\.{2,}", ".", _NAME.sub(".", path)).strip(".-") for path in paths}
    count = collections.Counter(plain.values())
    return {path: name if name and count[name] == 1 and len(name) <= LONGEST_NAME
            else f"{name[:LONGEST_NAME] or 'array'}.{hashlib.sha256(path.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}" for path, name in plain.items()}
