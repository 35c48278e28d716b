"""Functions of PyTorch as cases (see cases.py). Each case returns (call, arguments of each step). A case is made twice with the same seed:
with the cache and without."""
from __future__ import annotations

import ctypes
import dataclasses
import os

STEPS = 3
AS = ""  # the role of this process: "first", "cold", "warm" or "plain"


@dataclasses.dataclass
class InputMeta:
    data: object
    is_prompt: bool


def wrapped(function, options, how):
    """Wraps a function. `options`: the options of the cache; None: no wrapping; "plain": as PyTorch alone would run it."""
    if options is None or options == "plain":
        import torch

        return torch.compile(function, fullgraph=True) if options and how["compile"] is not False else function
    import warmgraph

    return warmgraph.cache_compile(function, **options, **how)


def mlp(torch, options, compile=False):
    class Mlp(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = torch.nn.Linear(64, 256), torch.nn.Linear(256, 64)
            self.norm = torch.nn.LayerNorm(64)
            self.step = wrapped(self.forward_step, options, {"compile": compile})

        def forward_step(self, x):
            return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))

    model = Mlp().cuda().eval()
    return model.step, [(torch.randn(32, 64, device="cuda"),) for _ in range(STEPS)]


def mlp_compiled(torch, options):
    return mlp(torch, options, compile=None)


def function_with_global(torch, options):
    global SCALE
    SCALE = torch.rand(128, device="cuda")
    offset = torch.rand(128, device="cuda")

    def scaled(x, factor=2.0):
        y = x * SCALE * factor + offset
        return {"y": y, "row": y[1], "x": x, "half": x[:, ::2], "n": 3}

    return wrapped(scaled, options, {"compile": False}), [(torch.randn(4, 128, device="cuda"),) for _ in range(STEPS)]


def torchair(torch, options, compile=None):
    """The example in TorchAir's documentation, as a case."""
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear1 = torch.nn.Linear(2, 1)
            self.linear2 = torch.nn.Linear(2, 1)
            for param in self.parameters():
                torch.nn.init.ones_(param)
            self.cached_prompt = wrapped(self.prompt, options, {"compile": compile})
            self.cached_decode = wrapped(self.decode, options, {"compile": compile})

        def forward(self, x, kv):
            if x.is_prompt:
                return self.cached_prompt(x, kv)
            return self.cached_decode(x, kv)

        def _forward(self, x, kv):
            return self.linear2(x.data) + self.linear2(kv[0])

        def prompt(self, x, y):
            return self._forward(x, y)

        def decode(self, x, y):
            return self._forward(x, y)

    model = Model().cuda()
    kv = [torch.randn(2, 2, device="cuda")]
    return model, [(InputMeta(torch.randn(2, 2, device="cuda"), i == 0), kv) for i in range(STEPS)]


def torchair_eager(torch, options):
    return torchair(torch, options, compile=False)


def llama(torch, options, compile=False):
    """A decode step of LlamaForCausalLM, after a prompt in its static cache."""
    from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

    config = LlamaConfig(vocab_size=512, hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=2, max_position_embeddings=64, attn_implementation="sdpa")

    class Decoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = LlamaForCausalLM(config)
            self.step = wrapped(self.decode, options, {"compile": compile})

        def prompt(self, tokens, position, cache):
            return self.model(input_ids=tokens, position_ids=position.unsqueeze(0), past_key_values=cache, use_cache=True)

        def decode(self, token, position, cache):
            return self.model(input_ids=token, position_ids=position.unsqueeze(0), past_key_values=cache, use_cache=True)

    model = Decoder().cuda().eval()
    cache = StaticCache(config=config, max_cache_len=64)
    prompt = 5
    with torch.no_grad():
        model.prompt(torch.randint(0, 512, (2, prompt), device="cuda"), torch.arange(prompt, device="cuda"), cache)
    tokens = torch.randint(0, 512, (STEPS, 2, 1), device="cuda")
    return model.step, [(tokens[i], torch.tensor([prompt + i], device="cuda"), cache) for i in range(STEPS)]


def llama_compiled(torch, options):
    return llama(torch, options, compile=None)


def module(torch, options, compile=False, form=lambda torch, net: net):
    """A module with hooks, which is itself the wrapped function."""
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = torch.nn.Linear(64, 256), torch.nn.Linear(256, 64)

        def forward(self, x, factor=0.5):
            return {"y": x + self.down(torch.nn.functional.gelu(self.up(x))) * factor}

    net = Net().cuda().eval()
    net.register_forward_pre_hook(lambda module, args: (args[0] * 2, *args[1:]))
    net.up.register_forward_hook(lambda module, args, result: result + 1)
    cached = wrapped(form(torch, net), options, {"compile": compile})
    return cached, [(torch.randn(32, 64, device="cuda"),) for _ in range(STEPS)]


def module_compiled(torch, options):
    return module(torch, options, compile=None)


def module_of_torch_compile(torch, options):
    """A module that the user compiled with torch.compile. A hit runs none of the compiled code."""
    return module(torch, options, compile=None, form=lambda torch, net: torch.compile(net, fullgraph=True))


def module_compiled_in_place(torch, options):
    def in_place(torch, net):
        net.compile(fullgraph=True)
        return net

    return module(torch, options, compile=None, form=in_place)


def module_with_compiled_layer(torch, options):
    def layer(torch, net):
        net.down.compile(fullgraph=True)
        return net

    return module(torch, options, form=layer)


class Borrowing:
    """A module with borrowed results. Results of earlier calls become stale; one of them may be an argument of the next call."""

    def __init__(self, torch, options):
        self.is_cached, self.calls, self.places, self.last = isinstance(options, dict), 0, set(), None
        self.net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64)).cuda().eval()
        self.cached = wrapped(self.net, {**options, "borrow": True} if self.is_cached else options, {"compile": False})

    def __call__(self, x):
        found = self.cached(x)
        self.calls += 1
        if self.is_cached and self.calls > 1:  # not in the first call, because a recording may return the function's own result
            self.expect_borrowed(found)
        chained = self.cached(found)  # this call must not overwrite its argument
        return [found.clone(), chained.clone()]

    def expect_borrowed(self, found):
        self.places.add(found.data_ptr())
        assert len(self.places) == 1, self.places
        if self.last is not None:
            try:
                self.last.sum()
            except RuntimeError as error:
                assert "borrowed result" in str(error), error
            else:
                raise AssertionError("a stale result was used")
        self.last = found[1:]


def borrowed(torch, options):
    return Borrowing(torch, options), [(torch.randn(32, 64, device="cuda"),) for _ in range(2 * STEPS)]


def convolutions(torch, options):
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2), nn.ReLU())
            self.head = nn.Linear(64, 10)
            self.step = wrapped(self.classify, options, {"compile": False})

        def classify(self, images):
            features = self.body(images)
            return self.head(features.mean((2, 3))), features

    model = Net().cuda().eval().to(memory_format=torch.channels_last)
    return model.step, [(torch.randn(4, 3, 64, 64, device="cuda").to(memory_format=torch.channels_last),) for _ in range(STEPS)]


def dropout(torch, options, compile=False):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(256, 256)
            self.step = wrapped(self.train_step, options, {"compile": compile})

        def train_step(self, x):
            return torch.nn.functional.dropout(self.linear(x), 0.25, self.training)

    model = Net().cuda().train()
    torch.manual_seed(11)
    return model.step, [(torch.ones(64, 256, device="cuda"),) for _ in range(STEPS)]


def fourier(torch, options):
    weights = torch.rand(501, device="cuda")

    def filtered(x):
        return torch.fft.irfft(torch.fft.rfft(x) * weights, n=1000)

    return wrapped(filtered, options, {"compile": False}), [(torch.randn(4, 1000, device="cuda"),) for _ in range(STEPS)]


def running_state(torch, options):
    """A module with a buffer that it writes, and a tensor that is not registered."""
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(128))
            self.mask = torch.arange(128, device="cuda") % 2
            self.step = wrapped(self.add, options, {"compile": False})

        def add(self, x):
            self.total.add_(x.sum(0) * self.mask)
            return self.total / 2, self.total

    model = Net().cuda()
    return model.step, [(torch.randn(8, 128, device="cuda"),) for _ in range(STEPS)]


def several_shapes(torch, options):
    linear = torch.nn.Linear(64, 64).cuda()

    def step(x):
        return torch.softmax(linear(x), -1)

    return wrapped(step, options, {"compile": False}), [(torch.randn(4 * (i + 1), 64, device="cuda"),) for i in range(STEPS)]


class Engine:
    """A table of graphs by batch size that share one buffer, as in serving engines. In the second round, the largest graph is freed and
    restored."""

    def __init__(self, torch, options):
        self.model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64)).cuda().eval()
        self.buffer, self.kv = torch.zeros(8, 64, device="cuda"), torch.zeros(8, 64, device="cuda")
        self.table, self.outcomes, self.refused, self.calls = {}, [], [], 0
        if isinstance(options, dict):
            from warmgraph.torch import GraphCache

            self.cache = GraphCache(**options)

    def forward_of(self, size):
        x, kv, model = self.buffer[:size], self.kv, self.model

        def forward():
            kv[:size].copy_(x)
            return {"logits": model(x) + kv[:size], "x": x}

        return forward

    def capture(self, size):
        graph, output = self.table[size] = self.cache.capture_one(size, self.forward_of(size), inputs=[self.buffer], states={"kv": self.kv})
        self.outcomes.append(graph.outcome)
        self.refused += [graph.why] if graph.why else []
        return graph, output

    def __call__(self, x):
        size, self.calls = len(x), self.calls + 1
        self.buffer[:size].copy_(x)
        if not hasattr(self, "cache"):
            return self.forward_of(size)()
        if self.calls == 2 * STEPS:
            self.table.pop(size)[0].reset()
        graph, output = self.table.get(size) or self.capture(size)
        self.buffer.fill_(7)  # overwrites the contents that the buffer had during the capture
        graph.replay()
        self.buffer[:size].copy_(x)
        graph.replay()
        return {name: one.clone() for name, one in output.items()}


def engine_table(torch, options):
    engine = Engine(torch, options)
    return engine, [(torch.randn(size, 64, device="cuda"),) for _ in range(2) for size in (1, 2, 4)]


class SmallEngine(Engine):
    """One graph of a small MLP, whose weights and biases are adjacent in one segment of the allocator."""

    def __init__(self, torch, options, moved):
        """moved: the buffer, too, gets another address in each process. Otherwise only the weights get another address."""
        if isinstance(options, dict):
            options = {**options, "captures": os.path.join(options["cache_dir"], "captures")}
        self.taken = [torch.empty((1 << 19) + 512, dtype=torch.uint8, device="cuda")] if moved and AS == "cold" else []
        self.x = torch.zeros(8, 64, device="cuda")
        if AS == "cold":  # the cold process fills the rest of a segment of 2 MiB and the start of the next one
            self.taken += [torch.empty(1 << 19, dtype=torch.uint8, device="cuda") for _ in range(5)]
        super().__init__(torch, options)
        self.buffer = self.x

    def forward_of(self, size):
        x, model = self.buffer[:size], self.model

        def forward():
            return {"logits": model(x)}

        return forward

    def capture(self, size):
        graph, output = self.table[size] = self.cache.capture_one(size, self.forward_of(size))
        self.outcomes.append(graph.outcome)
        self.refused += [graph.why] if graph.why and AS != "first" else []
        return graph, output


def engine_pair(torch, options):
    return SmallEngine(torch, options, moved=True), [(torch.randn(4, 64, device="cuda"),) for _ in range(STEPS)]


def engine_pair_that_stays(torch, options):
    return SmallEngine(torch, options, moved=False), [(torch.randn(4, 64, device="cuda"),) for _ in range(STEPS)]


def logits_of(torch, options, model, **more):
    """The logits of a transformers language model. If its stream is capturing, the model builds its masks in another way."""
    model = model.cuda().eval()

    def logits(tokens):
        return model(tokens, use_cache=False, **{name: tokens for name in more.get("also", ())}).logits

    return wrapped(logits, options, {"compile": False}), [(torch.randint(1, 512, (2, 16), device="cuda"),) for _ in range(STEPS)]


def doge(torch, options):
    from transformers import DogeConfig, DogeForCausalLM

    config = DogeConfig(vocab_size=512, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                        max_position_embeddings=64, keep_window_size=4)
    return logits_of(torch, options, DogeForCausalLM(config))


def umt5(torch, options):
    from transformers import UMT5Config, UMT5ForConditionalGeneration

    config = UMT5Config(vocab_size=512, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_decoder_layers=2, num_heads=4)
    return logits_of(torch, options, UMT5ForConditionalGeneration(config), also=("decoder_input_ids",))


def qwen2(torch, options):
    """A model that is called without a cache and without a mask: it reads from its own position tensor whether the sequences are packed."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    config = Qwen2Config(vocab_size=512, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
    return logits_of(torch, options, Qwen2ForCausalLM(config))


def mistral(torch, options):
    from transformers import MistralConfig, MistralForCausalLM

    config = MistralConfig(vocab_size=512, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
    return logits_of(torch, options, MistralForCausalLM(config))


def gemma(torch, options):
    from transformers import GemmaConfig, GemmaForCausalLM

    config = GemmaConfig(vocab_size=512, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=16)
    return logits_of(torch, options, GemmaForCausalLM(config))


def reads_a_constant(torch, options):
    """A function that reads a number from a tensor on the host; the number depends only on a shape."""
    def forward(x):
        positions = torch.arange(x.shape[0], device="cuda")
        return x * 2 if bool((positions.diff() == 1).all()) else x + int(positions.sum())

    return wrapped(forward, options, {"compile": False}), [(torch.randn(8, 64, device="cuda"),) for _ in range(STEPS)]


def reads_what_a_kernel_wrote(torch, options):
    """A function that reads memory to which PyTorch's operators wrote zeros, and a foreign kernel other numbers afterwards."""
    global tl
    import triton
    import triton.language as tl

    @triton.jit
    def copy(x, y, n: tl.constexpr):
        at = tl.arange(0, n)
        tl.store(y + at, tl.load(x + at))

    def forward(x):
        y = torch.zeros(512, device="cuda")
        copy[(1,)](x, y, 512)
        return x * float(y[0])

    return wrapped(forward, options, {"compile": False}), [(torch.randn(512, device="cuda"),) for _ in range(STEPS)]


def in_own_thread(torch, options):
    """A function that dequantises in its own thread, where the default stream is current."""
    import threading

    whole, scale = torch.randint(-127, 127, (64, 64), device="cuda", dtype=torch.int8), torch.rand(64, 1, device="cuda")

    def forward(x):
        made = []

        def dequantise():
            with torch.no_grad():
                made.append(whole.float() * scale)

        thread = threading.Thread(target=dequantise)
        thread.start()
        thread.join()
        return x @ made.pop()

    return wrapped(forward, options, {"compile": False}), [(torch.randn(8, 64, device="cuda"),) for _ in range(STEPS)]


PEERS = []  # addresses that the library keeps


class Raw:
    """Device memory that no tensor owns, like the memory of a library."""

    def __init__(self, torch, nbytes):
        torch.zeros(1, device="cuda")  # this makes a context on the device
        self._driver, self._pointer, self.dtype = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64(), torch.int64
        assert self._driver.cuMemAlloc_v2(ctypes.byref(self._pointer), ctypes.c_size_t(nbytes)) == 0

    def data_ptr(self):
        return self._pointer.value

    def write(self, numbers):
        values = (ctypes.c_uint64 * len(numbers))(*numbers)
        assert self._driver.cuMemcpyHtoD_v2(self._pointer, values, ctypes.c_size_t(8 * len(numbers))) == 0


def registered_after_capture(torch, options):
    """A function that uses a library like custom all-reduces: its kernels read a table of addresses, and the library fills the table after
    a capture has ended."""
    global tl
    import triton
    import triton.language as tl

    @triton.jit
    def add_through(table, x, y, n: tl.constexpr):
        at = tl.arange(0, n)
        other = tl.load(table).to(tl.pointer_type(tl.float32))
        tl.store(y + at, tl.load(x + at) + tl.load(other + at))

    table = Raw(torch, 64)
    PEERS.append(torch.randn(512, device="cuda"))
    table.write([PEERS[-1].data_ptr()])

    def forward(x):
        y = torch.empty_like(x)
        add_through[(1,)](table, x, y, 512)
        return y * 2

    return wrapped(forward, options, {"compile": False}), [(torch.randn(512, device="cuda"),) for _ in range(STEPS)]


def green_context(torch, options):
    """A function that works in a stream of a green context, which uses a part of the device's multiprocessors."""
    driver, index = ctypes.CDLL("libcuda.so.1"), torch.cuda.current_device()
    torch.zeros(1, device="cuda")
    whole, part, rest = (ctypes.create_string_buffer(256) for _ in range(3))
    groups, described, context, stream = ctypes.c_uint(1), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    steps_of_it = [driver.cuDeviceGetDevResource(index, whole, 1),
                   driver.cuDevSmResourceSplitByCount(part, ctypes.byref(groups), whole, rest, 0, 16),
                   driver.cuDevResourceGenerateDesc(ctypes.byref(described), part, 1),
                   driver.cuGreenCtxCreate(ctypes.byref(context), described, index, 1),
                   driver.cuGreenCtxStreamCreate(ctypes.byref(stream), context, 1, 0)]
    assert steps_of_it == [0] * 5, steps_of_it
    os.environ["GREEN"], weight = str(stream.value), torch.randn(64, 64, device="cuda")

    def forward(x):
        side = torch.cuda.ExternalStream(int(os.environ["GREEN"]))
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            y = torch.relu(x * weight)
        torch.cuda.current_stream().wait_stream(side)
        return y + x

    return wrapped(forward, options, {"compile": False}), [(torch.randn(64, 64, device="cuda"),) for _ in range(STEPS)]


def asks_for_its_capture(torch, options, is_captured=None):
    """A function that asks whether it is being captured. In a capture, the second result and a buffer differ."""
    total = torch.zeros(64, device="cuda")

    def step(x):
        captured = torch._C._cuda_isCurrentStreamCapturing() if is_captured is None else torch.cuda.is_current_stream_capturing()
        factor = 3 if captured else 2
        total.add_(x.sum(0))
        return x + 1, x * factor, total

    return wrapped(step, options, {"compile": False}), [(torch.randn(8, 64, device="cuda"),) for _ in range(STEPS)]


def asks_pytorch_for_its_capture(torch, options):
    """The same function, but it asks PyTorch. In a capture, this question can get the same answer as in the eager run."""
    return asks_for_its_capture(torch, options, is_captured=True)


def in_default_stream(torch, options):
    """A function that dequantises in the default stream: the answer includes this work, and a capture does not."""
    whole, scale = torch.randint(-127, 127, (64, 64), device="cuda", dtype=torch.int8), torch.rand(64, 1, device="cuda")

    def forward(x):
        with torch.cuda.stream(torch.cuda.default_stream()):
            weight = whole.float() * scale
        return x @ weight

    return wrapped(forward, options, {"compile": False}), [(torch.randn(8, 64, device="cuda"),) for _ in range(STEPS)]


def triton_in_default_stream(torch, options):
    """A function that launches a Triton kernel in the default stream. No PyTorch operator launches this kernel."""
    global tl
    import triton
    import triton.language as tl

    @triton.jit
    def twice(x, y, n: tl.constexpr):
        at = tl.arange(0, n)
        tl.store(y + at, tl.load(x + at) * 2)

    def forward(x):
        y = torch.empty_like(x)
        with torch.cuda.stream(torch.cuda.default_stream()):
            twice[(1,)](x, y, 512)
        return y + 1

    return wrapped(forward, options, {"compile": False}), [(torch.randn(512, device="cuda"),) for _ in range(STEPS)]


def synchronises(torch, options):
    """A function that synchronises. In a capture this fails and has no other effect: the next case is recorded."""
    def forward(x):
        return x * 2 if bool((x < 1e9).all()) else x

    return wrapped(forward, options, {"compile": False}), [(torch.randn(512, device="cuda"),) for _ in range(STEPS)]


def forked_stream(torch, options):
    """A function that uses a second stream: it is forked from the current stream and joined again, and is recorded with it."""
    weight = torch.randn(64, 64, device="cuda")

    def forward(x):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            y = x @ weight
        z = x * 2
        torch.cuda.current_stream().wait_stream(side)
        return y + z

    return wrapped(forward, options, {"compile": False}), [(torch.randn(8, 64, device="cuda"),) for _ in range(STEPS)]


def in_the_callers_graph(torch, options):
    """The caller first calls a function to warm it up, and then captures it in a graph of their own. In a later process the warm-up calls
    are replays, so that libraries make their handles in the caller's capture."""
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Flatten(), torch.nn.Linear(288, 64)).cuda().half().eval()

    class Caller:
        def __init__(self):
            self.step = wrapped(lambda x: torch.fft.fft(net(x).float()).abs(), options, {"compile": False})
            self.calls = 0

        def __call__(self, x):
            self.calls += 1
            if self.calls < STEPS:
                return self.step(x)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                y = self.step(x)
            graph.replay()
            return y

    return Caller(), [(torch.randn(4, 3, 8, 8, device="cuda", dtype=torch.half),) for _ in range(STEPS)]


def holds_a_compiled_method(torch, options):
    """A function with a variable that holds a method which the caller compiled. Dynamo has put a wrapper around this method."""
    net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64)).cuda().eval()
    compiled = torch.compile(net.forward)
    return wrapped(lambda x: compiled(x) + 1, options, {"compile": False}), [(torch.randn(8, 64, device="cuda"),) for _ in range(STEPS)]


def layer_drop(torch, options):
    """A module that draws a number on the host for each layer, and reads it only in training. The caller's next number must follow."""
    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(4))

        def forward(self, x):
            for layer in self.layers:
                drop_probability = torch.rand([])
                if not (self.training and drop_probability < 0.1):
                    x = layer(x)
            return x

    encode = wrapped(Encoder().cuda().eval(), options, {"compile": False})

    def call(x):
        torch.default_generator.manual_seed(7)
        return encode(x), torch.rand(2)

    call.encode = encode
    return call, [(torch.randn(8, 64, device="cuda"),) for _ in range(STEPS)]


class Window:
    """A static window of rows, as in transformers: a number of the host decides whether the window is full."""

    def __init__(self, torch):
        self.length, self.rows, self.at = 0, torch.zeros(4, 64, device="cuda"), torch.zeros(1, dtype=torch.long, device="cuda")

    def update(self, torch, x):
        length = self.length
        self.length += 1
        if length >= self.rows.shape[0]:
            self.rows.copy_(torch.cat((self.rows[1:], x)))
        else:
            self.rows.index_copy_(0, self.at, x)
            self.at.add_(1)


def sliding_window(torch, options):
    """A function that advances a number in an argument. A replay advances it too, and the next entry follows when the window is full."""
    def forward(x, window):
        window.update(torch, x)
        return window.rows.softmax(0)

    window, cached = Window(torch), wrapped(forward, options, {"compile": False})

    def call(x):
        return cached(x, window), torch.tensor(float(window.length)), window.rows.clone()

    call.cached = cached
    return call, [(torch.randn(1, 64, device="cuda"),) for _ in range(9)]


def number_for_a_kernel(torch, options):
    """A function that gives such a number to a kernel as a host tensor, which no operator's attributes show."""
    def forward(x, window):
        window.length += 1
        return x * torch.tensor(float(window.length))

    window, cached = Window(torch), wrapped(forward, options, {"compile": False})

    def call(x):
        return cached(x, window)

    call.cached = cached
    return call, [(torch.randn(1, 64, device="cuda"),) for _ in range(STEPS)]


def autocast_that_converted_before(torch, options):
    """A module under autocast, which has the converted weights in its cache already, and uses them after the call."""
    net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64)).cuda().eval()
    cached = wrapped(net, options, {"compile": False})

    def call(x):
        with torch.autocast("cuda", torch.float16):
            return net(x), cached(x), net(x)

    call.cached = cached
    return call, [(torch.randn(8, 64, device="cuda"),) for _ in range(STEPS)]


def eigenvalues(torch, options):
    """A function that computes eigenvalues. Capturing this would break cuSOLVER, so it is refused before it is captured; later calls run
    the function itself."""
    return (wrapped(lambda x: torch.linalg.eigvalsh(x @ x.T), options, {"compile": False}),
            [(torch.randn(16, 16, device="cuda"),) for _ in range(STEPS)])


def own_generator(torch, options):
    """A function that draws from a generator of the caller's own, which the caller draws from between calls, too."""
    generator = torch.Generator("cuda").manual_seed(11)

    def forward(x):
        return x + torch.rand(x.shape, generator=generator, device="cuda")

    cached = wrapped(forward, options, {"compile": False})

    def call(x):
        return cached(x), torch.rand(4, generator=generator, device="cuda")

    call.cached = cached
    return call, [(torch.randn(8, 64, device="cuda"),) for _ in range(STEPS)]


def triton_tuned(torch, options):
    """A function whose Triton kernel tunes itself in its first call."""
    import triton
    import triton.language as tl

    @triton.autotune([triton.Config({"BLOCK": block}) for block in (64, 256)], key=["n"])
    @triton.jit
    def scale(x, y, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + at, tl.load(x + at, mask=at < n) * 3, mask=at < n)

    def forward(x):
        y = torch.empty_like(x)
        scale[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel())
        return y

    return wrapped(forward, options, {"compile": False}), [(torch.randn(1000, device="cuda"),) for _ in range(STEPS)]


def result_with_a_cache(torch, options):
    """A language model whose result holds a DynamicCache of transformers."""
    from transformers import LlamaConfig, LlamaForCausalLM

    model = LlamaForCausalLM(LlamaConfig(vocab_size=512, hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4,
                                         num_key_value_heads=2)).cuda().eval()
    cached = wrapped(model, options, {"compile": False})

    def call(tokens):
        found = cached(tokens, use_cache=True)
        kept = found.past_key_values
        return found.logits, type(kept).__name__ == "DynamicCache" and [(one.keys, one.values) for one in kept.layers]

    call.cached = cached
    return call, [(torch.randint(0, 512, (2, 7), device="cuda"),) for _ in range(STEPS)]


def _quantised(torch, options, config):
    from torchao.quantization import quantize_

    net = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 256)).cuda().bfloat16().eval()
    quantize_(net, config)
    return wrapped(net, options, {"compile": False}), [(torch.randn(8, 256, device="cuda", dtype=torch.bfloat16),) for _ in range(STEPS)]


def torchao_int8(torch, options):
    """A module whose weights torchao made integers of 8 bits."""
    from torchao.quantization import Int8WeightOnlyConfig

    return _quantised(torch, options, Int8WeightOnlyConfig())


def torchao_int8_activations(torch, options):
    """A module whose weights and activations torchao makes integers of 8 bits."""
    from torchao.quantization import Int8DynamicActivationInt8WeightConfig

    return _quantised(torch, options, Int8DynamicActivationInt8WeightConfig())


def torchao_int4(torch, options):
    """A module whose weights torchao made integers of 4 bits, which PyTorch's own kernel reads."""
    from torchao.quantization import Int4WeightOnlyConfig

    return _quantised(torch, options, Int4WeightOnlyConfig(group_size=32, int4_packing_format="tile_packed_to_4d"))


CASES = (mlp, mlp_compiled, function_with_global, torchair, torchair_eager, llama, llama_compiled, module, module_compiled,
         module_of_torch_compile, module_compiled_in_place, module_with_compiled_layer, borrowed, convolutions, dropout, fourier,
         running_state, several_shapes, engine_table, engine_pair, engine_pair_that_stays, doge, umt5, qwen2, mistral, gemma,
         reads_a_constant, reads_what_a_kernel_wrote, in_own_thread, registered_after_capture, green_context, asks_for_its_capture,
         asks_pytorch_for_its_capture, in_default_stream, triton_in_default_stream, synchronises, forked_stream, in_the_callers_graph,
         holds_a_compiled_method, layer_drop, sliding_window, number_for_a_kernel, autocast_that_converted_before, eigenvalues,
         own_generator, triton_tuned, result_with_a_cache, torchao_int8, torchao_int8_activations, torchao_int4)
RECORDED = {"several_shapes": 3, "sliding_window": 2, "engine_table": 3, "torchair": 2, "torchair_eager": 2}
REFUSED = {"asks_for_its_capture": "behaves differently under capture: result1", "in_default_stream": "in the default stream of cuda:0",
           "triton_in_default_stream": "in the legacy default stream, which is not captured with it", "synchronises": "",
           "reads_what_a_kernel_wrote": "", "in_own_thread": "", "registered_after_capture": "lies in no declared region",
           "eigenvalues": "which cannot be captured and may leave its library unusable",
           "green_context": "it runs in another context than the device's primary one",
           "torchao_int8_activations": "in safe_int_mm",  # PyTorch cannot capture it
           "number_for_a_kernel": "each call changes window.length"}
