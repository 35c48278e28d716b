"""Makes the declaration of a call for the library."""
from __future__ import annotations

import dataclasses
from typing import Sequence

import torch

from warmgraph.core.serving._entry_metadata import WORDS
from warmgraph.torch.read import _tensors
from warmgraph.torch.replay import _entry, _outputs
from warmgraph.torch.replay._regions import Region


def completed(given: _entry.Declaration, metadata: _outputs.Metadata, words: Sequence[int], text: str = "",
              outputs: Sequence[torch.Tensor] = ()) -> _entry.Declaration:
    """Adds the parts that only the metadata has to a declaration. `outputs`: the output tensors, if a recording is stored."""
    declared = [one for one in metadata.outputs if has_elements(one)]
    pointers = [one.data_ptr() for one in outputs if one.numel()] or [0] * len(declared)
    decls = [output_decl(one, pointer) for one, pointer in zip(declared, pointers)]
    states = [one.with_access(one.name in metadata.written) for one in given.states]
    states += [_entry.Decl(name, "i64", (1,), None, pointer, 8, False) for name, pointer in zip(WORDS, words)]
    return dataclasses.replace(given, outputs=decls, states=states, metadata=text)


def has_elements(output: _outputs.Output) -> bool:
    return all(output.sizes)


def output_decl(output: _outputs.Output, pointer: int) -> _entry.Decl:
    dtype = _tensors.dtype_of(output.dtype)
    like = torch.empty_strided(output.sizes, output.strides, dtype=dtype, device="meta")
    nbytes = _tensors.extent(like)
    if _tensors.own_type(dtype) and like.dim() <= _tensors.MOST_DIMENSIONS:
        return _entry.Decl(output.name, _tensors.own_type(dtype), output.sizes, None if like.is_contiguous() else output.strides, pointer, nbytes)
    short, count = _tensors.flat_type(dtype, nbytes)
    return _entry.Decl(output.name, short, (count,), None, pointer, nbytes)


def decls(regions: Sequence[Region]) -> list[_entry.Decl]:
    return [one.decl() for one in regions]
