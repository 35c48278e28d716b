"""The second of two programs must not use the recording of the first."""
from __future__ import annotations


import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

import torch_on_the_host as host  # noqa: E402
from hostile_calls import X, expect_noticed, refusal, replays, users, wrap  # noqa: E402
from warmgraph.torch.read import _installed_code  # noqa: E402

pytestmark = pytest.mark.usefixtures("on_the_host")


_PRELUDE = "import enum, functools, operator, numpy, torch\nfrom torch.nn import Module\n"
_WRAP = "def around(f):\n    def inner(x): return f(x)\n    return inner\n"
_ACTS = "def made(by):\n    def act(x): return x * by\n    return act\ntwo, three = made(2.0), made(3.0)\n"
PROGRAMS: dict[str, tuple[str, str, str]] = {  # (common code, code of the first program, code of the second)
    "decorated functions exchanged": (
        _WRAP + "@around\ndef a(x): return x {}\n@around\ndef b(x): return x {}\ndef work(x): return a(b(x))", "+ 1|* 2", "* 2|+ 1"),
    "functions without gradients exchanged": (
        "@torch.no_grad()\ndef a(x): return x {}\n@torch.no_grad()\ndef b(x): return x {}\ndef work(x): return a(b(x))", "+ 1|* 2", "* 2|+ 1"),
    "methods without gradients exchanged": (
        "class Net(Module):\n    @torch.no_grad()\n    def a(self, x): return x {}\n    @torch.no_grad()\n    def b(self, x): return x {}\n"
        "    def forward(self, x): return self.a(self.b(x))\nnet = Net()\ndef work(x): return net(x)", "+ 1|* 2", "* 2|+ 1"),
    "a global function of the same code": (_ACTS + "act = {}\ndef work(x): return act(x) + 0 * (two(x) + three(x))", "two", "three"),
    "a default of the same code": (_ACTS + "def h(x, f={}): return f(x)\ndef work(x): return h(x) + 0 * (two(x) + three(x))", "two", "three"),
    "a partial's of the same code": (
        _ACTS + "def h(f, x): return f(x)\nact = functools.partial(h, {})\ndef work(x): return act(x) + 0 * (two(x) + three(x))", "two", "three"),
    "a list of functions of the same code": (_ACTS + "acts = [{}, {}]\ndef work(x): return acts[0](x) - acts[1](x)", "two|three", "three|two"),
    "a list with one of them twice": (_ACTS + "acts = [two, three, {}]\ndef work(x): return acts[0](x) - acts[1](x) * acts[2](x)", "two", "three"),
    "a static function of C's": ("class K(Module):\n    act = staticmethod({})\n    def forward(self, x): return self.act(x)\nk = K()\ndef work(x): return k(x)",
                                 "torch.relu", "torch.tanh"),
    "a static partial": ("class K:\n    act = staticmethod(functools.partial(torch.nn.functional.gelu, approximate={}))\nk = K()\n"
                         "def work(x): return k.act(x)", "'none'", "'tanh'"),
    "a method of C's": ("class K:\n    act = {}\ndef work(x): return K.act(x)", "torch.Tensor.relu", "torch.Tensor.tanh"),
    "the order of base classes": ("class A(Module):\n    def act(self, x): return x + 1\nclass B(Module):\n    def act(self, x): return x * 3\n"
                                  "class C({}, {}):\n    def forward(self, x): return self.act(x)\nc = C()\ndef work(x): return c(x)", "A|B", "B|A"),
    "a base class": ("class A:\n    def act(self, x): return x + 1\nclass B:\n    def act(self, x): return x * 3\nclass C({}):\n    pass\n"
                     "a, b, c = A(), B(), C()\ndef work(x): return c.act(x) + 0 * (a.act(x) + b.act(x))", "A", "B"),
    "a callable object with a function's name": (
        "class W:\n    def __init__(self, f):\n        functools.update_wrapper(self, f)\n        self.f = f\n    def __call__(self, x): return self.f(x)\n"
        "@W\ndef act(x): return x {}\ndef work(x): return act(x)", "+ 1", "- 1"),
    "a key that is an enumerator": (
        "class M(enum.Enum):\n    A = ({}, 2)\ntable = {{M.A: 1.0}}\ndef work(x):\n    for m, v in table.items(): x = x * v * m.value[0]\n    return x", "1", "2"),
    "a key that is a class": ("class K:\n    def act(self, x): return x {}\ntable = {{K: 1.0}}\ndef work(x):\n    for kind in table: x = kind().act(x)\n    return x",
                              "+ 1", "- 1"),
    "a text of its own": ("class K:\n    def __str__(self): return '{}'\nk, table = K(), {{'a': 1.0, 'b': 2.0}}\ndef work(x): return x * table[str(k)]", "a", "b"),
    "values of enumerators that nobody names": ("class M(enum.Enum):\n    A = {}\ndef work(x):\n    for m in M: x = x * m.value\n    return x", "2", "3"),
    "an enumerator for a missing value": ("class M(enum.Enum):\n    A = 2\n    B = 3\n    @classmethod\n    def _missing_(cls, value): return cls.{}\n"
                                          "def work(x): return x * M('other').value", "A", "B"),
    "an item of a class": ("class Meta(type):\n    def __getitem__(cls, i): return i {}\nclass K(metaclass=Meta):\n    pass\ndef work(x): return x * K[2]", "+ 1", "* 7"),
    "what sets a property": (
        "class K:\n    @property\n    def a(self): return self._a\n    @a.setter\n    def a(self, v): self._a = v {}\n    @property\n    def b(self): return self._b\n"
        "    @b.setter\n    def b(self, v): self._b = v {}\ndef work(x):\n    k = K()\n    k.a = 2\n    k.b = 3\n    return x * k.a - k.b", "+ 1|* 2", "* 2|+ 1"),
    "what a class above holds": (
        "class A:\n    width = {}\nclass B(A):\n    width = 5\n    def act(self, x): return x * super().width\nb = B()\ndef work(x): return b.act(x)", "1", "2"),
    "what a module's class above holds": (
        "class A(Module):\n    width = {}\nclass B(A):\n    width = 5\n    def forward(self, x): return x * super().width\nb = B()\ndef work(x): return b(x)",
        "1", "2"),
    "what a class beside it holds": (
        "class A:\n    width = 4\nclass B(A):\n    def act(self, x): return x * super().width\nclass C(A):\n    width = {}\nclass D(B, C):\n    width = 9\n"
        "d = D()\ndef work(x): return d.act(x)", "1", "2"),
    "what a class holds below an attribute": (
        "class A:\n    width = {}\n    def __init__(self): self.width = 5\n    def act(self, x): return x * type(self).width\na = A()\ndef work(x): return a.act(x)", "1", "2"),
    "what a module's class holds below an attribute": (
        "class A(Module):\n    width = {}\n    def __init__(self):\n        super().__init__()\n        self.width = 5\n    def forward(self, x): return x * self.__class__.width\n"
        "a = A()\ndef work(x): return a(x)", "1", "2"),
    "a name with underscores": ("class K:\n    __version__ = {}\ndef work(x): return x * K.__version__", "1", "2"),
    "a module's class with such a name": (
        "class Net(Module):\n    __scale__ = {}\n    def forward(self, x): return x * self.__scale__\nnet = Net()\ndef work(x): return net(x)", "1", "2"),
    "an attribute with such a name": ("class K:\n    pass\nk = K()\nk.__w = {}\ndef work(x): return x * k.__w", "1", "2"),
    "what a pattern names by place": (
        "class K:\n    __match_args__ = ('{}', '{}')\n    def __init__(self): self.a, self.b = 1, 2\nk = K()\ndef work(x):\n    match k:\n        case K(u, v): return x * u - v",
        "a|b", "b|a"),
    "a property of C's": ("class K:\n    w = property(operator.attrgetter('{}'))\n    a, b = 1, 2\nk = K()\ndef work(x): return x * k.w + 0 * (k.a + k.b)", "a", "b"),
    "local classes of one name": (
        "def made(first):\n    if first:\n        class K:\n            def act(self, x): return x + 1\n    else:\n        class K:\n            def act(self, x): return x * 2\n"
        "    return K\nA, B = made({}), made({})\ndef work(x): return A().act(B().act(x))", "1|0", "0|1"),
    "objects of local classes of one name": (
        "def made(first):\n    if first:\n        class K:\n            def act(self, x): return x + 1\n    else:\n        class K:\n            def act(self, x): return x * 2\n"
        "    return K()\nacts = [made({}), made({})]\ndef work(x): return acts[0].act(acts[1].act(x))", "1|0", "0|1"),
    "modules of local classes of one name": (
        "def made(first):\n    if first:\n        class K(Module):\n            def forward(self, x): return x + 1\n    else:\n        class K(Module):\n"
        "            def forward(self, x): return x * 2\n    return K()\nacts = torch.nn.Sequential(made({}), made({}))\ndef work(x): return acts(x)", "1|0", "0|1"),
    "classes of one name": (
        "class Base:\n    by = 2\nclass K(Base):\n    by = 1\n    def act(self, x): return x * super().by {}\nA = K()\nclass K(Base):\n    by = 3\n"
        "    def act(self, x): return x - super().by {}\nB = K()\ndef work(x): return A.act(B.act(x))", "+ 1|* 2", "* 2|+ 1"),
    "implementations under one decorator": (
        _WRAP + "@functools.singledispatch\ndef by(v, x): return x\n@by.register({})\n@around\ndef _(v): return 2.0\n@by.register({})\n@around\ndef _(v): return 3.0\n"
        "def work(x): return x * by(1) - by('a')", "int|str", "str|int"),
    "a matrix": ("m = numpy.{}\ndef work(x): return x * float((m * m)[0, 1])", "array([[1., 2.], [3., 4.]])", "matrix([[1., 2.], [3., 4.]])"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_two_programs_have_two_entries(name):
    source, one, other = PROGRAMS[name]
    results = []
    for number, arguments in enumerate((one, other)):
        work = users(_PRELUDE + source.format(*arguments.split("|")))
        cached = wrap(work)
        results.append(cached(X))
        assert replays() == 0 and not refusal(cached) and len(host.entries) == number + 1
        assert torch.equal(results[-1], work(X))
    assert not torch.equal(*results)


def test_one_program_has_one_entry():
    """The program runs again as in another process: no fact differs between the runs."""
    for source, one, _ in PROGRAMS.values():
        before = replays()
        for _ in range(2):
            wrap(users(_PRELUDE + source.format(*one.split("|"))))(X)
        assert replays() == before + 1, source


@pytest.mark.parametrize("name, change", [
    ("what a class above holds", "A.width = 7"), ("what a module's class above holds", "A.width = 7"), ("what a class beside it holds", "C.width = 7"),
    ("what a class holds below an attribute", "A.width = 7"), ("what a module's class holds below an attribute", "A.width = 7"),
    ("a name with underscores", "K.__version__ = 7"), ("a module's class with such a name", "Net.__scale__ = 7"), ("an attribute with such a name", "k.__w = 7"),
    ("what a pattern names by place", "K.__match_args__ = ('b', 'a')"), ("a property of C's", "K.w = property(operator.attrgetter('b'))")])
@pytest.mark.parametrize("calls", [1, 3])
def test_what_is_hidden_and_changes_between_two_calls_is_noticed(name, change, calls):
    source, one, _ = PROGRAMS[name]
    work = users(_PRELUDE + source.format(*one.split("|")))
    cached = wrap(work)
    for _ in range(calls):
        cached(X)
    exec(change, work.__globals__)
    before = replays()
    assert torch.equal(cached(X), work(X)) and replays() == before


@pytest.mark.parametrize("name", ["forward", "backward", "vjp", "setup_context"])
def test_what_autograd_calls_of_a_function_of_the_users_counts(name):
    source = "class F(torch.autograd.Function):\n    @staticmethod\n    def {}(ctx, g): return g * {}\ndef work(x): return F.apply(x)"
    digests = [_installed_code.TorchReachedCode(users(source.format(name, by))).digest() for by in (2, 3, 2)]
    assert digests[0] == digests[2] != digests[1]


def test_a_function_that_takes_anothers_place_is_noticed():
    made = users(_PRELUDE + _ACTS + "act = two\ndef work(x): return act(x) + 0 * (two(x) + three(x))")
    cached, space = wrap(made), made.__globals__
    expect_noticed(lambda: cached(X), lambda: space.update(act=space["three"]))
