"""Supports graphs of PyTorch that draw random numbers: such a graph reads two words of a generator.

A graph that draws numbers reads its generator's seed and offset from device memory. PyTorch allocates one word for each when a graph is
registered with the generator's state, and fills both before every replay. For a cache, the words are memory that the caller fills before a
call. Each capture gets its own state, so that the words have other addresses in the second capture.
"""
SEED = 0x5EED


class Word:
    """A 64-bit integer at an address on the device, in a form that torch.as_tensor accepts."""

    def __init__(self, address):
        self.__cuda_array_interface__ = {"shape": (1,), "typestr": "<i8", "data": (address, False), "version": 3}


def default(torch):
    return torch.cuda.default_generators[torch.cuda.current_device()]


def registered(torch, graph, generator):
    """Gives the generator a new state, and registers the graph with this state. Returns the two words of the state as tensors."""
    state = torch.Generator("cuda")
    state.manual_seed(SEED)
    generator.graphsafe_set_state(state.graphsafe_get_state())
    before = _blocks_in_use(torch)
    graph.register_generator_state(generator)
    words = sorted(_blocks_in_use(torch) - before)
    if len(words) != 2:
        raise RuntimeError(f"a generator's state took {len(words)} blocks of memory when a graph was registered, expected 2")
    return [torch.as_tensor(Word(address), device="cuda") for address in words]


def _blocks_in_use(torch):
    return {block["address"] for segment in torch.cuda.memory_snapshot() for block in segment["blocks"]
            if block["state"] == "active_allocated"}
