"""The models for the comparison: made on the device, equal in every process. Imports PyTorch."""
from __future__ import annotations

import dataclasses
from typing import Any, Callable

import llama_model
import torch


@dataclasses.dataclass
class Made:
    """A step on the device. Repeated calls with these arguments give (logits, next tokens) of the same position."""

    model: Any
    arguments: tuple[Any, ...]

    def eager(self) -> Any:
        return self.model.forward(*self.arguments)


def shape_of(settings: dict[str, Any], **others: int) -> llama_model.Shape:
    names = {field.name for field in dataclasses.fields(llama_model.Shape)}
    return llama_model.Shape(**{name: value for name, value in {**settings, **others}.items() if name in names})


def step(settings: dict[str, Any]) -> Made:
    llama_model.choose_attention("efficient")
    model, token, position = llama_model.made(shape_of(settings))
    return Made(model, (token, position))


@dataclasses.dataclass
class Table:
    """Steps of one model by batch size: the first `size` sequences of its caches. Engines capture `forward(size)`."""

    model: Any
    token: torch.Tensor
    position: torch.Tensor

    @property
    def sizes(self) -> list[int]:
        """The sizes in the capture order of engines: the largest first, because its memory serves the other sizes."""
        return list(range(self.model.shape.batch, 0, -1))

    def forward(self, size: int) -> Callable[[], Any]:
        model, token, position = self.model, self.token[:size], self.position

        def forward() -> Any:
            return model(token, position)

        return forward


def table(settings: dict[str, Any]) -> Table:
    llama_model.choose_attention("efficient")
    return Table(*llama_model.made(shape_of(settings, layers=settings["table_layers"], batch=settings["sizes"])))


class Decoder(torch.nn.Module):
    """A decode step of transformers at one position of a static cache. The cache counts positions, so it is set back after each step."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, token: Any, position: Any, cache: Any) -> Any:
        for layer in cache.layers:
            layer.cumulative_length.copy_(position[0])
        logits = self.model(input_ids=token, position_ids=position.unsqueeze(0), past_key_values=cache, use_cache=True).logits[:, -1]
        return logits, logits.argmax(-1)


def huggingface(settings: dict[str, Any]) -> Made:
    from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

    llama_model.choose_attention("efficient")
    heads, dim, batch, context = 16, 1024, settings["batch"], settings["context"]
    config = LlamaConfig(vocab_size=32000, hidden_size=dim, intermediate_size=2816, num_hidden_layers=settings["hf_layers"],
                         num_attention_heads=heads, num_key_value_heads=heads, max_position_embeddings=context, attn_implementation="sdpa")
    torch.manual_seed(llama_model.SEED)
    with torch.no_grad():
        with torch.device(llama_model.DEVICE):
            model = Decoder(LlamaForCausalLM(config)).to(llama_model.DEVICE, llama_model.DTYPE).eval()
        cache = StaticCache(config=config, max_cache_len=context)
        # No prompt is run: it would already start the libraries that a first step starts.
        cache.early_initialization(batch, heads, dim // heads, llama_model.DTYPE, torch.device(llama_model.DEVICE))
        for layer in cache.layers:
            layer.keys.normal_()
            layer.values.normal_()
        token = torch.randint(0, 32000, (batch, 1), device=llama_model.DEVICE)
        position = torch.tensor([context // 2], device=llama_model.DEVICE)
    return Made(model, (token, position, cache))


MODELS: dict[str, type] = {"step": llama_model.Llama, "huggingface": Decoder}
MAKERS: dict[str, Callable[[dict[str, Any]], Any]] = {"step": step, "table": table, "huggingface": huggingface}
