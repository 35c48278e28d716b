"""Training as cases (see cases.py): functions under gradients, and steps of optimizers."""
from __future__ import annotations

from functions import STEPS, wrapped


class Pair:
    """A module under gradients: each call is a forward and a backward. Its results are the loss and the gradients of the input and the weights."""

    def __init__(self, torch, options, net, loss=None):
        self.torch, self.calls = torch, 0
        self.net = net.cuda().train()
        self.loss = loss or (lambda found: found.square().mean())
        self.is_cached = isinstance(options, dict)
        self.cached = wrapped(self.net, {**options, "pair": True} if self.is_cached else options, {"compile": False})

    def __call__(self, *given):
        self.calls += 1
        self.net.zero_grad()
        given = [one.clone().requires_grad_(one.is_floating_point()) for one in given]
        with self.torch.enable_grad():
            return self.step(*given)

    def step(self, *given):
        loss = self.loss(self.cached(*given))
        loss.backward()
        self.expect_apart()
        return [loss.detach(), *(one.grad for one in given if one.requires_grad), *self.gradients()]

    def gradients(self):
        """Returns copies of the gradients, because later calls must not change them."""
        return [one.grad.clone() for one in self.net.parameters() if one.grad is not None]

    def expect_apart(self):
        """Expects that no .grad is in the arena, which the next forward overwrites."""
        arena = getattr(self.cached._shared.known.last, "arena", None) if self.is_cached else None
        if arena is None:
            return
        saved = {one.untyped_storage().data_ptr() for one in arena.memory()}
        assert saved and not saved & {one.grad.untyped_storage().data_ptr() for one in self.net.parameters() if one.grad is not None}


def _mlp_of(torch, *more):
    nn = torch.nn
    return nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 256), nn.GELU(), *more, nn.Linear(256, 64))


def pair_mlp(torch, options):
    return Pair(torch, options, _mlp_of(torch)), [(torch.randn(32, 64, device="cuda"),) for _ in range(STEPS)]


def pair_dropout(torch, options):
    pair = Pair(torch, options, _mlp_of(torch, torch.nn.Dropout(0.25)))
    torch.manual_seed(11)
    return pair, [(torch.ones(64, 64, device="cuda"),) for _ in range(STEPS)]


class PairOfConvolutions(Pair):
    """A pair whose results include the running statistics, which forward writes."""

    def step(self, *given):
        return [*super().step(*given), *(one.clone() for one in self.net.buffers())]


def pair_conv_batchnorm(torch, options):
    nn = torch.nn
    net = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2), nn.ReLU(),
                        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    return PairOfConvolutions(torch, options, net), [(torch.randn(4, 3, 64, 64, device="cuda"),) for _ in range(STEPS)]


class PairInTraining(Pair):
    """A pair in a training step with SGD and momentum."""

    def __init__(self, torch, options, net):
        import torch._dynamo  # the optimizer imports Dynamo, so here a hit may do so, too

        super().__init__(torch, options, net)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.05, momentum=0.9)

    def step(self, x):
        self.optimizer.zero_grad()
        loss = self.loss(self.cached(x) - x.detach().roll(1, 0))
        loss.backward()
        self.optimizer.step()
        return [loss.detach()]


def pair_training(torch, options):
    return PairInTraining(torch, options, _mlp_of(torch)), [(torch.randn(32, 64, device="cuda"),) for _ in range(20)]


class PairForLong(Pair):
    """A pair in a training loop: micro-batches whose gradients are summed, autocast with a scaled loss, and an optimizer whose step is cached
    too."""

    def __init__(self, torch, options, net, micro=1, is_scaled=False, adam=None):
        import torch._dynamo  # the optimizer imports Dynamo, so here a hit may do so, too

        super().__init__(torch, options, net)
        self.micro, self.scaler = micro, torch.amp.GradScaler("cuda", init_scale=256.0, growth_interval=20) if is_scaled else None
        parameters = list(self.net.parameters())
        self.optimizer = torch.optim.AdamW(parameters, **adam) if adam else torch.optim.SGD(parameters, lr=0.05, momentum=0.9)
        if adam:
            for one in parameters:
                one.grad = torch.zeros_like(one)
            self.optimizer.step()  # makes its state
        self.update = wrapped(self.optimizer.step, options, {"compile": False}) if adam else self.optimizer.step

    def step(self, x):
        torch, total = self.torch, 0.0
        for part in x.detach().chunk(self.micro):
            with torch.autocast("cuda", torch.float16, enabled=self.scaler is not None):
                loss = self.loss((self.cached(part) - part.roll(1, 0)).float()) / self.micro
            (self.scaler.scale(loss) if self.scaler is not None else loss).backward()
            total = total + loss.detach()
        if self.scaler is not None:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            with torch.no_grad():
                self.update()
        return [total, *(one.detach().clone() for one in self.net.parameters())] if self.calls % 20 == 0 else [total]


class Checkpointed:
    """Makes a module whose layers are checkpointed. The first one is not, because PyTorch's older checkpoint wants an input that requires grad."""

    def __init__(self, torch, **how):
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = torch.nn.ModuleList(_mlp_of(torch) for _ in range(3))

            def forward(self, x):
                from torch.utils.checkpoint import checkpoint

                x = self.layers[0](x)
                for layer in self.layers[1:]:
                    x = x + checkpoint(layer, x, **how)
                return x

        self.net = Net()


def _batches(torch, count=100):
    return [(torch.randn(32, 64, device="cuda"),) for _ in range(count)]


def pair_for_long(torch, options):
    return PairForLong(torch, options, _mlp_of(torch)), _batches(torch)


def pair_for_long_checkpointed(torch, options):
    return PairForLong(torch, options, Checkpointed(torch, use_reentrant=False).net), _batches(torch)


def pair_for_long_reentrant(torch, options):
    """PyTorch's older checkpoint calls backward itself."""
    return PairForLong(torch, options, Checkpointed(torch, use_reentrant=True).net), _batches(torch)


def pair_for_long_accumulated(torch, options):
    return PairForLong(torch, options, _mlp_of(torch), micro=4), _batches(torch)


def pair_for_long_scaled(torch, options):
    return PairForLong(torch, options, _mlp_of(torch), is_scaled=True), _batches(torch)


def pair_for_long_adam(torch, options):
    return PairForLong(torch, options, _mlp_of(torch), adam={"lr": 1e-3, "capturable": True}), _batches(torch)


class PairTwoForwards(Pair):
    """A pair whose second forward, before the first backward, overwrites the saved values."""

    def step(self, x):
        first = self.cached(x)
        is_replayed = self.is_cached and "_Step" in type(first.grad_fn).__name__
        second = self.cached(x * 0.5)
        if is_replayed:
            import warmgraph

            try:
                first.sum().backward()
            except warmgraph.Stale as error:
                assert "has overwritten its saved tensors" in str(error), error
            else:
                raise AssertionError("a backward used what a later forward saved")
        self.net.zero_grad()
        second.square().mean().backward()
        return [second.detach(), *self.gradients()]


def pair_second_forward(torch, options):
    return PairTwoForwards(torch, options, _mlp_of(torch)), [(torch.randn(32, 64, device="cuda"),) for _ in range(STEPS)]


class PairAccumulating(Pair):
    """A pair that sums the gradients of two batches. Copies of the first batch's gradients are compared, too."""

    def step(self, x):
        self.loss(self.cached(x)).backward()
        self.expect_apart()
        kept = [one.grad for one in self.net.parameters()]
        values = self.gradients()
        for one in self.net.parameters():
            one.grad = None
        self.loss(self.cached(x * 0.5)).backward()
        assert all(self.torch.equal(one, value) for one, value in zip(kept, values)), "a later backward changed a gradient that was kept"
        self.loss(self.cached(x * 2)).backward()
        self.expect_apart()
        return [*kept, *self.gradients()]


def pair_accumulation(torch, options):
    return PairAccumulating(torch, options, _mlp_of(torch)), [(torch.randn(32, 64, device="cuda"),) for _ in range(STEPS)]


def pair_language_model(torch, options):
    """A language model from tokens to a loss: an embedding, causal attention, cross entropy. The logits are a result, too, but get no
    gradient."""
    nn = torch.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.qkv, self.head = nn.Embedding(128, 64), nn.Linear(64, 192), nn.Linear(64, 128)

        def forward(self, tokens, targets):
            h = self.embedding(tokens)
            q, k, v = (one.view(*tokens.shape, 4, 16).transpose(1, 2) for one in self.qkv(h).chunk(3, -1))
            attended = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            logits = self.head(h + attended.transpose(1, 2).reshape(h.shape))
            return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()), logits

    pair = Pair(torch, options, Model(), loss=lambda found: found[0])
    return pair, [(torch.randint(0, 128, (2, 32), device="cuda"), torch.randint(0, 128, (2, 32), device="cuda")) for _ in range(STEPS)]


class PairUnderAutocast(Pair):
    def step(self, x):
        with self.torch.autocast("cuda", self.torch.bfloat16):
            found = self.cached(x)
        loss = found.float().square().mean()
        loss.backward()
        return [loss.detach(), x.grad, *self.gradients()]


def pair_autocast(torch, options):
    return PairUnderAutocast(torch, options, _mlp_of(torch)), [(torch.randn(32, 64, device="cuda"),) for _ in range(STEPS)]


# --- Functions that enqueue other work during a capture, or work in another stream. If a replay would be wrong, they are refused with a
# reason


class OptimizerStep:
    """Updates by two optimizers, from new gradients in each step, with a learning rate that changes in its tensor."""

    def __init__(self, torch, options):
        rate = torch.tensor(1e-2, device="cuda")
        parameters = [torch.nn.Parameter(torch.randn(n, 64, device="cuda")) for n in (64, 32, 1)]
        others = [torch.nn.Parameter(torch.randn(48, 32, device="cuda")) for _ in range(2)]
        lists = torch.optim.AdamW(parameters, lr=rate, foreach=True, capturable=True)
        fused = torch.optim.Adam([{"params": others[:1]}, {"params": others[1:], "lr": 1e-3}], fused=True, capturable=True)
        self.optimizers = [lists, fused]
        self.set_gradients(torch.ones((), device="cuda"))
        for one in self.optimizers:
            one.step()  # makes its state

        def update():
            lists.step()

        self.rate, self.update = rate, wrapped(update, options, {"compile": False})
        self.update_fused = wrapped(fused.step, options, {"compile": False})

    def parameters(self):
        return [one for optimizer in self.optimizers for group in optimizer.param_groups for one in group["params"]]

    def set_gradients(self, x):
        for one in self.parameters():
            one.grad = one.detach() * x

    def __call__(self, x):
        for one in self.optimizers:
            one.zero_grad(set_to_none=True)
        self.set_gradients(x)
        self.rate.mul_(0.5)
        self.update()
        self.update_fused()
        return [*self.parameters(), *(state for one in self.optimizers for states in one.state.values() for state in states.values())]


def optimizer_step(torch, options):
    return OptimizerStep(torch, options), [(torch.randn((), device="cuda"),) for _ in range(STEPS)]


def pair_own_checkpoint(torch, options):
    """A function with a checkpoint of the user's own, whose backward itself adds gradients to weights."""
    class Checkpoint(torch.autograd.Function):
        @staticmethod
        def forward(ctx, function, x):
            ctx.function = function
            with torch.no_grad():
                y = function(x)
            ctx.save_for_backward(x)
            return y

        @staticmethod
        def backward(ctx, gradient):
            x = ctx.saved_tensors[0].detach().requires_grad_()
            with torch.enable_grad():
                y = ctx.function(x)
            torch.autograd.backward(y, gradient)
            return None, x.grad

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)

        def forward(self, x):
            return self.second(Checkpoint.apply(self.first, torch.relu(x)))

    return Pair(torch, options, Net()), [(torch.randn(32, 64, device="cuda"),) for _ in range(STEPS)]


CASES = (pair_mlp, pair_dropout, pair_conv_batchnorm, pair_training, pair_for_long, pair_for_long_checkpointed, pair_for_long_reentrant,
         pair_for_long_accumulated, pair_for_long_scaled, pair_for_long_adam, pair_second_forward, pair_accumulation, pair_language_model,
         pair_autocast, optimizer_step, pair_own_checkpoint)
# Forward and backward; the optimizers' case has two functions, and Adam's step is a third one.
RECORDED = {**{one.__name__: 2 for one in CASES}, "pair_for_long_adam": 3}
REFUSED = {"pair_for_long_reentrant": "", "pair_own_checkpoint": "its backward puts a gradient into self.first.weight by itself"}
