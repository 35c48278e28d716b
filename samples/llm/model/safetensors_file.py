# SPDX-License-Identifier: Apache-2.0
"""Reads and writes safetensors files of f32 tensors with numpy alone.

Layout: u64 little endian length of the header, the header (JSON, padded with spaces so that the data
begins at a multiple of 8), the data. `data_offsets` count from the begin of the data.
"""

import json
import struct
from pathlib import Path

import numpy as np


def write(path, tensors, metadata):
    """`tensors`: name -> f32 array, written in this order; `metadata`: str -> str."""
    header = {"__metadata__": metadata}
    offset = 0
    for name, array in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in tensors.values():
            file.write(np.ascontiguousarray(array, dtype="<f4").tobytes())


def read(path):
    """Returns (tensors, metadata)."""
    content = Path(path).read_bytes()
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8:8 + length])
    metadata = header.pop("__metadata__")
    tensors = {}
    for name, entry in header.items():
        if entry["dtype"] != "F32":
            raise ValueError(f"tensor {name} is {entry['dtype']}, expected F32")
        begin, end = entry["data_offsets"]
        data = np.frombuffer(content, "<f4", (end - begin) // 4, 8 + length + begin)
        tensors[name] = data.reshape(entry["shape"])
    return tensors, metadata
