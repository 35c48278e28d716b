"""The comparison of bench/torch_peers.py: subjects, the ways to start them, and their order. Does not import PyTorch."""
from __future__ import annotations

import dataclasses

QUICK_S, COMPILES_S = 60, 150  # seconds; a process that takes longer is ended

PRECOMPILE = {"TORCH_CACHING_PRECOMPILE": "1"}
HIT = {"WARMGRAPH_POLICY": "require_hit"}


@dataclasses.dataclass(frozen=True)
class Way:
    """A way to start. Each measurement uses a new process."""

    name: str
    start: str  # a function of with_torch.py, or "adopt" or "without torch"
    family: str  # ways of one family must give equal first tokens: "eager" or "compiled"; "" when no tokens are computed
    caches: str  # folder of PyTorch's and the driver's caches
    entries: str = ""  # folder of warmgraph's cache
    is_empty: bool = False  # both folders are emptied before each process
    leaves: str = ""  # the file that the process leaves for a later way
    needs: str = ""  # the file from an earlier way
    is_repeated: bool = False  # fast: runs in several processes, and the table has medians
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    note: str = ""

    @property
    def limit_s(self) -> int:
        return QUICK_S if self.is_repeated else COMPILES_S


EAGER = Way("eager", "eager", "eager", "eager", is_repeated=True)
GRAPH = Way("eager + CUDA graph", "graph", "eager", "eager", is_repeated=True)
COLD = Way("torch.compile, empty caches", "compile", "compiled", "plain", is_empty=True, leaves="mega.bin")
WARM = Way("torch.compile, caches warm", "compile", "compiled", "plain", needs="mega.bin")
MEGA = Way("Mega-Cache into empty caches", "mega", "compiled", "mega", is_empty=True, needs="mega.bin")
PRECOMPILED_COLD = Way("caching precompile, empty caches", "compile", "compiled", "precompile", is_empty=True, leaves="precompiled",
                       environment=PRECOMPILE)
PRECOMPILED = Way("caching precompile, caches warm", "compile", "compiled", "precompile", needs="precompiled", environment=PRECOMPILE)
RECORDING = Way("warmgraph, recording", "recording", "compiled", "recording", "compiled", is_empty=True, leaves="recorded")
RESTORED = Way("warmgraph", "restored", "compiled", "restored", "compiled", needs="recorded", is_repeated=True, environment=HIT)
EAGER_RECORDING = Way("warmgraph, recording eager", "recording", "eager", "eager", "eager", is_empty=False, leaves="recorded-eager")
EAGER_RESTORED = Way("warmgraph, eager recorded", "restored", "eager", "restored", "eager", needs="recorded-eager", is_repeated=True,
                     environment=HIT)
ADOPTING = Way("(adoption for the next row)", "adopt", "", "plain", leaves="adopted/manifest.json")
WITHOUT_TORCH = Way("warmgraph without PyTorch", "without torch", "compiled", "restored", needs="adopted/manifest.json", is_repeated=True,
                    environment=HIT)
ALONE = (EAGER, GRAPH, EAGER_RECORDING, EAGER_RESTORED, COLD, WARM, MEGA, RECORDING, RESTORED)

TABLE_GRAPHS = Way("torch.cuda.graph for each size", "table of graphs", "eager", "eager", is_repeated=True)
TABLE_RECORDING = Way("warmgraph, recording", "table", "eager", "eager", "table", leaves="recorded-table")
TABLE_RESTORED = Way("warmgraph", "table", "eager", "restored", "table", needs="recorded-table", is_repeated=True, environment=HIT)


@dataclasses.dataclass(frozen=True)
class Subject:
    name: str
    title: str
    ways: tuple[Way, ...]

    @property
    def is_table(self) -> bool:
        return self.name == "table"


SUBJECTS = (
    Subject("step", "decode step, {layers} layers, {dim} wide, batch {batch}, context {context}, bfloat16",
            (*ALONE, ADOPTING, WITHOUT_TORCH, PRECOMPILED_COLD, PRECOMPILED)),
    Subject("table", "that step for {sizes} batch sizes, {table_layers} layers, eager: a serving engine's table of graphs",
            (TABLE_GRAPHS, TABLE_RECORDING, TABLE_RESTORED)),
    Subject("huggingface", "LlamaForCausalLM of transformers, static cache, {hf_layers} layers, 1024 wide, batch {batch}, bfloat16",
            (*ALONE, PRECOMPILED_COLD, PRECOMPILED)),
)
ROLES = {"hit": RESTORED.name, "eager hit": EAGER_RESTORED.name, "recording": RECORDING.name, "without": WITHOUT_TORCH.name}


def needed(way: Way, subject: Subject) -> list[Way]:
    """The ways that leave the files that this one needs, in order."""
    if not way.needs:
        return []
    before = next(one for one in subject.ways if one.leaves == way.needs)
    return [*needed(before, subject), before]
