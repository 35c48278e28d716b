"""Memory between tensors, so that no two of them move by the same distance from one capture to the next.

An address between two neighbours is the end of one and the start of the other. Where both moved together, nothing tells which of the
two a pointer follows, and an adoption is refused.
"""

SMALL, LARGE = 1 << 20, 10 << 20  # PyTorch's allocator keeps tensors up to the first and from the second on in segments of their own


def spacer(torch, size, turn, device="cuda"):
    """What to keep beside a tensor of `size` bytes: the allocator takes it from where that tensor comes from. In the second turn
    (capture) tensors lie farther apart than in the first, so that each moves farther than the one before."""
    if size <= SMALL:
        count = turn << 12
    elif size < LARGE:
        count = SMALL + turn * 4096
    else:
        count = LARGE + turn * (2 << 20)
    return torch.empty(count, dtype=torch.uint8, device=device)


def fill_holes(torch, device="cuda"):
    """What to keep so that small tensors made next come from a new segment, one behind the other: the allocator puts each into the
    smallest hole, where it may lie beside another tensor that moved as far."""
    reserved, kept = torch.cuda.memory_reserved(), []
    while torch.cuda.memory_reserved() == reserved and len(kept) < 1 << 14:
        kept.append(torch.empty(512, dtype=torch.uint8, device=device))
    return kept
