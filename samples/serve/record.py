"""Records a language model of transformers: a Llama with random weights, whose `prompt` and `decode` give the next token.

usage: record.py FOLDER [--layers 2 --width 64 --heads 4 --vocabulary 256 --dtype float32] [--prompt 5 --tokens 16] [--compile] [--seed 0]

It writes into FOLDER: config.json and model.safetensors as transformers has them; cache with the entries; and golden.json with the tokens that
PyTorch alone generates in a new process, and the time from that process's start to the first token. serve.py and serve.cpp need only these files.
"""
import argparse
import json
import pathlib
import subprocess
import sys

import start

import warmgraph  # imported before the first kernel of the process

import safetensors.torch
import torch
from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

MODEL = "serve-sample"
KEPT = ("recorded", "replayed")  # "replayed": the folder has the entries already


class Generator(LlamaForCausalLM):
    """The model with its KV cache. It derives from the model, so that its tensors have the names in the file."""

    def __init__(self, config):
        super().__init__(config)
        self.kv = StaticCache(config=config, max_cache_len=config.max_position_embeddings)

    def on_device(self, device):
        """Moves the weights and the KV cache to the device. Without this, the KV cache would be made in the first call,
        which then could not be recorded."""
        self.to(device)
        heads = self.config.num_key_value_heads
        self.kv.early_initialization(1, heads, self.config.hidden_size // self.config.num_attention_heads, self.dtype, torch.device(device))
        return self.eval()

    def prompt(self, tokens):
        """tokens i64[1, P] -> the next token, i64[1, 1]."""
        return self.following(tokens, torch.arange(tokens.shape[1], device=tokens.device))

    def decode(self, token, position):
        """token i64[1, 1], position i64[1] -> the next token, i64[1, 1]."""
        return self.following(token, position)

    def following(self, tokens, positions):
        # The model makes its own mask: transformers would read the cache's length on the host to decide about a mask, and a graph cannot do that.
        seen = torch.arange(self.config.max_position_embeddings, device=tokens.device) <= positions[:, None]
        given = self(input_ids=tokens, attention_mask=seen[None, None], position_ids=positions[None], past_key_values=self.kv,
                     use_cache=True, logits_to_keep=1)
        return given.logits[:, -1].argmax(-1, keepdim=True)


def generated(prompt, decode, tokens, count, device):
    """Returns (the tokens, milliseconds from the process's start to the first token)."""
    with torch.no_grad():
        token = prompt(torch.tensor([tokens], device=device))
        found, first_ms = [token.item()], start.since_start_ms()
        for i in range(count - 1):
            token = decode(token, torch.tensor([len(tokens) + i], device=device))
            found.append(token.item())
    return found, first_ms


def config_of(options):
    # twice: a recording runs `prompt` again after its answer, and restores the memory that it wrote.
    positions = 2 * options.prompt + options.tokens
    return LlamaConfig(vocab_size=options.vocabulary, hidden_size=options.width, intermediate_size=2 * options.width,
                       num_hidden_layers=options.layers, num_attention_heads=options.heads,
                       num_key_value_heads=max(1, options.heads // 2), max_position_embeddings=positions,
                       tie_word_embeddings=True, dtype=options.dtype,
                       # Large weights, so that the layers matter more than the embedding, which would repeat its token.
                       initializer_range=0.5)


def model_in(folder, options):
    config = LlamaConfig.from_pretrained(folder)
    model = Generator(config).to(getattr(torch, options.dtype))
    safetensors.torch.load_model(model, folder / "model.safetensors")
    return model.on_device(options.device)


def pytorch_alone(options):
    """The run of the process that golden.json describes."""
    model = model_in(options.folder, options)
    functions = [torch.compile(one, fullgraph=True) if options.compile else one for one in (model.prompt, model.decode)]
    tokens, first_ms = generated(*functions, options.alone, options.tokens, options.device)
    print(json.dumps({"model": MODEL, "prompt": options.alone, "tokens": tokens, "first_token_ms": first_ms}))


def recorded(options, prompt):
    """Returns (the tokens of the recording process, the functions' outcomes)."""
    model, config = model_in(options.folder, options), warmgraph.Config(model=MODEL)
    functions = [warmgraph.cache_compile(one, config=config, cache_dir=options.folder / "cache", compile=options.compile)
                 for one in (model.prompt, model.decode)]
    tokens, _ = generated(*functions, prompt, options.tokens, options.device)
    return tokens, [warmgraph.explain(one) for one in functions if one.report() is None or one.report().outcome not in KEPT]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    for name, default in (("layers", 2), ("width", 64), ("heads", 4), ("vocabulary", 256), ("prompt", 5), ("tokens", 16), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--dtype", choices=("float32", "bfloat16", "float16"), default="float32")
    parser.add_argument("--compile", action="store_true", help="with torch.compile; else eager")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--alone", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone is not None:
        return pytorch_alone(options)

    options.folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(options.seed)
    prompt = torch.randint(0, options.vocabulary, (options.prompt,)).tolist()
    model = Generator(config_of(options)).to(getattr(torch, options.dtype))
    model.config.save_pretrained(options.folder)
    safetensors.torch.save_model(model, options.folder / "model.safetensors")
    alone = subprocess.run([sys.executable, __file__, *sys.argv[1:], "--alone", json.dumps(prompt)], check=True, stdout=subprocess.PIPE, text=True)
    golden = json.loads(alone.stdout.splitlines()[-1])
    (options.folder / "golden.json").write_text(json.dumps(golden) + "\n")

    tokens, failures = recorded(options, prompt)
    print(f"PyTorch generated {golden['tokens']}, {golden['first_token_ms']:.0f} ms from its start to the first")
    if failures or tokens != golden["tokens"]:
        sys.exit("\n".join([f"the process that recorded generated {tokens}", *failures]))


if __name__ == "__main__":
    main()
