"""Allocates memory between tensors, so that no two tensors move by the same distance from one capture to the next.

An address between two neighbours is the end of one and the start of the other. If both tensors moved by the same distance, nothing shows to
which of them a pointer belongs, and the adoption is refused.
"""

SMALL, LARGE = 1 << 20, 10 << 20  # PyTorch's allocator puts tensors up to SMALL, and tensors from LARGE on, into separate segments


def spacer(torch, size, turn, device="cuda"):
    """Allocates memory to keep beside a tensor of `size` bytes, from the same segments. In the second turn (capture) this memory is larger
    than in the first, so that each tensor moves farther than the one before."""
    if size <= SMALL:
        count = turn << 12
    elif size < LARGE:
        count = SMALL + turn * 4096
    else:
        count = LARGE + turn * (2 << 20)
    return torch.empty(count, dtype=torch.uint8, device=device)


def fill_holes(torch, device="cuda"):
    """Allocates memory to keep, so that the next small tensors come from a new segment, one behind the other. Otherwise the allocator puts
    each of them into the smallest hole, perhaps beside another tensor that moved by the same distance."""
    reserved, kept = torch.cuda.memory_reserved(), []
    while torch.cuda.memory_reserved() == reserved and len(kept) < 1 << 14:
        kept.append(torch.empty(512, dtype=torch.uint8, device=device))
    return kept
