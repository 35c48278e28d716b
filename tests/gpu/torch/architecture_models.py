"""Makes the models that architectures.py runs, with three inputs each; and finds recipes for models of transformers.

A row names a model: "timm resnet10t float32", "causal llama bfloat16 small/ids". The recipe of a model of transformers has a size of its
configuration (SIZES) and the names of its inputs (INPUTS).
"""
from __future__ import annotations

import contextlib
import dataclasses
import inspect
import re
import zlib

INPUT_COUNT = 3
NEW_TOKENS = 8
TEXT = 16  # tokens of a text
WINDOW = 20  # tokens of a sliding window in generate(), so that it is full before the last token

# Attributes of configurations in the small size. A number that is smaller already stays.
WIDTHS = dict.fromkeys((
    "hidden_size", "d_model", "n_embd", "n_embed", "embed_dim", "dim", "word_embed_proj_dim", "embedding_size", "hidden_dim", "d_embed", "emb_dim",
    "projection_dim", "out_hidden_size", "text_hidden_size", "encoder_hidden_size", "decoder_hidden_size", "cross_attention_hidden_size", "proj_size",
    "text_embed_dim", "embedding_dim", "mamba_hidden_size", "conv_dim", "output_hidden_size", "qformer_hidden_size", "audio_hidden_size",
    "fpn_feature_size", "mask_feature_size", "feature_size", "lru_width", "lstm_hidden_size", "hidden_size_per_layer_input", "output_dim",
    "share_dim", "vision_hidden_size", "attention_hidden_size", "word_vec_size", "encoder_hidden_dim", "decoder_hidden_dim", "pooler_output_size",
    "output_proj_dims", "output_size", "codebook_dim", "adapter_dim"), 64)
SMALL = {
    **WIDTHS,
    **dict.fromkeys(("intermediate_size", "ffn_dim", "d_ff", "d_ffn", "n_inner", "encoder_ffn_dim", "decoder_ffn_dim", "d_inner", "ff_dim", "mlp_dim",
                     "moe_intermediate_size", "shared_expert_intermediate_size", "ffn_hidden_size", "dim_feedforward", "feed_forward_size",
                     "mamba_intermediate_size", "intermediate_size_mlp", "encoder_intermediate_size", "decoder_intermediate_size", "hidden_dim_ffn",
                     "moe_shared_expert_intermediate_size", "hidden_mlp_dim", "shared_intermediate_size", "mlp_hidden_size", "ffn_intermediate_size",
                     "decoder_mlp_dim", "conditioner_size"), 128),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads", "decoder_attention_heads", "heads",
                     "n_attn_heads", "num_encoder_attention_heads", "num_decoder_attention_heads", "encoder_num_attention_heads",
                     "decoder_num_attention_heads"), 4),
    **dict.fromkeys(("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num", "decoder_num_key_value_heads",
                     "encoder_num_key_value_heads", "attention_num_key_value_heads"), 2),
    **dict.fromkeys(("head_dim", "kv_channels", "d_kv", "attention_head_dim", "v_head_dim", "qk_nope_head_dim", "attention_head_size", "head_size",
                     "d_head", "global_head_dim", "kv_lora_rank", "index_head_dim"), 16),
    "q_lora_rank": 32, "qk_rope_head_dim": 8, "qk_head_dim": 24, "index_n_heads": 2, "index_topk": 8, "rotary_dim": 8,
    "n_group": 1, "topk_group": 1, "mamba_n_heads": 8, "mamba_d_head": 16, "mamba_num_heads": 8, "mamba_head_dim": 16, "ssm_state_size": 16,
    "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 16,
    "vocab_size_per_layer_input": 256, "num_mel_bins": 80, "num_kv_shared_layers": 0, "expert_ffn_hidden_size": 128, "zero_expert_num": 2,
    "encoder_hash_byte_group_vocab": 256,
}
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers", "num_decoder_layers", "depth",
          "num_encoder_layers", "encoder_num_hidden_layers", "decoder_num_hidden_layers", "decoder_num_layers", "encoder_num_layers", "layers",
          "num_hidden_layers_decoder",
          "num_dense_layers", "num_block_layers", "projector_depth", "decoder_depth", "num_coarse_layers", "qformer_num_hidden_layers")
SHORT = {
    **dict.fromkeys(LAYERS, 2),
    **dict.fromkeys(("vocab_size", "src_vocab_size", "tgt_vocab_size", "text_vocab_size", "decoder_vocab_size", "input_vocab_size",
                     "output_vocab_size"), 256),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "max_seq_length", "max_sequence_length", "seq_length",
                     "context_length", "max_target_positions", "max_source_positions"), 128),
    **dict.fromkeys(("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts", "n_experts", "num_moe_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "moe_topk", "moe_k", "num_experts_per_token", "top_k_experts"), 2),
    "attn_layer_period": 2, "attn_layer_offset": 1, "sliding_window": 32, "attention_window_size": 32, "first_k_dense_replace": 1, "num_codebooks": 4,
}
IMAGE = {"image_size": 64, "img_size": 64, "patch_size": 16, "num_frames": 8}
HEADS = "for None"  # values for attributes that are None
SIZES = {"small": ({**SMALL, **SHORT, **IMAGE}, "built"), "text": ({**SMALL, **SHORT}, "built"), "small-set": ({**SMALL, **SHORT, **IMAGE}, "set"),
         "heads": ({**SMALL, **SHORT, **IMAGE, HEADS: {"head_dim": 16, "num_key_value_heads": 2, "n_routed_experts": 4, "n_shared_experts": 1,
                                                       "moe_intermediate_size": 64, "num_experts_per_tok": 2, "q_lora_rank": 32}}, "built"),
         "short": (SHORT, "built"), "short-set": (SHORT, "set"), "whole": ({}, "built")}
MOST_PARAMETERS = {"small": 30e6, "text": 30e6, "small-set": 30e6, "heads": 30e6, "short": 120e6, "short-set": 120e6, "whole": 120e6}
INPUTS = ("ids", "ids+dec", "pixels", "ids+pixels", "values", "features", "features-t", "features+dec", "features-t+dec", "values+dec", "video",
          "pixels+dec", "ids+values", "ids+features", "pixels-224", "ids+bbox")


@dataclasses.dataclass(frozen=True)
class Row:
    suite: str
    name: str
    type: str
    recipe: str = "-"

    @property
    def key(self):
        return f"{self.suite} {self.name} {self.type}"

    @property
    def folder(self):
        return re.sub(r"[^A-Za-z0-9_.-]", "_", f"{self.suite}-{self.name}-{self.type}")

    @property
    def origin(self):
        """(suite, name) of the model itself; a compiled row has both in its name."""
        suite, _, name = self.name.partition("/")
        return (suite, name) if self.suite == "compiled" else (self.suite, self.name)


def read_rows(path):
    lines = [line.split() for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return [Row(*line) for line in lines]


# --- Configurations of transformers


def _pairs(config):
    return {name: value for name, value in vars(config).items() if not name.startswith("_")}


def _is_number(value):
    return isinstance(value, int) and not isinstance(value, bool)


def _changes(config, wanted):
    """The values of `wanted` that a configuration has with larger numbers, its lists of layers cut, and its token numbers in the vocabulary."""
    values, found = _pairs(config), {}
    for name, value in values.items():
        if name in wanted and _is_number(value) and value > wanted[name]:
            found[name] = wanted[name]
        if name in wanted and name in IMAGE and isinstance(value, (list, tuple)) and value and all(map(_is_number, value)):
            found[name] = type(value)(min(one, wanted[name]) for one in value)
    if "qk_rope_head_dim" in found:  # all heads have keys of their own, and the rotary part is the head's size
        found.update({name: value for name, value in (("head_dim", 8), ("num_key_value_heads", 4)) if name in values})
    if "expand" in values and "num_heads" in found:
        found["num_heads"] = 8  # of 16, and twice the width
    if "attn_layer_indices" in values and "num_hidden_layers" in found:
        found["attn_layer_indices"] = [1]
    if "head_dim" in wanted and HEADS in wanted:
        for name, value in wanted[HEADS].items():
            if name in values and values[name] is None:
                found[name] = value
    if "vocab_size" in wanted:
        given = 255
        for name, value in values.items():
            if re.search(r"token_id$|token_index$|_token$|padding_idx$", name) and _is_number(value) and value >= 200:
                found[name] = given
                given -= 1
        for name, value in (("pad_token_id", 0), ("bos_token_id", 1), ("eos_token_id", 2), ("decoder_start_token_id", 1)):
            if _is_number(values.get(name)) and values[name] >= 200:
                found[name] = value
            elif isinstance(values.get(name), list):
                found[name] = value
    old = max((values[name] for name in LAYERS if name in found), default=0)
    lists = {name: value for name, value in values.items() if isinstance(value, list) and len(value) == old and old > 2}
    if lists:
        kinds = {}  # a layer of each kind
        for at, kind in enumerate(zip(*lists.values())):
            kinds.setdefault(repr(kind), at)
        kept = sorted(kinds.values())[:4]
        kept += [at for at in range(old) if at not in kept][:max(0, 2 - len(kept))]
        kept.sort()
        for name in lists:
            found[name] = [lists[name][at] for at in kept]
        for name in LAYERS:
            if name in found and values[name] == old:
                found[name] = len(kept)
    return found


def _repaired(config):
    for name in ("rope_parameters", "rope_scaling"):
        rope = getattr(config, name, None)
        if isinstance(rope, dict) and (rope.get("mrope_section") or re.match(r"glm4v|glm46v|glm_image|glm_ocr", config.model_type)):
            half = int((getattr(config, "head_dim", None) or 16) * rope.get("partial_rotary_factor", 1)) // 2
            rope["mrope_section"] = [half - 2 * (half * 3 // 8), half * 3 // 8, half * 3 // 8]
    return config


def small_backbone():
    from transformers import ResNetConfig

    return ResNetConfig(embedding_size=16, hidden_sizes=[16, 32, 64, 64], depths=[1, 1, 1, 1], layer_type="basic",
                        out_features=["stage2", "stage3", "stage4"])


def config_of(kind, size):
    """A configuration of this class in one of SIZES, with those below it."""
    from transformers import PreTrainedConfig

    wanted, how = SIZES[size]
    whole = kind()
    below = {name: config_of(type(value), size) for name, value in _pairs(whole).items() if isinstance(value, PreTrainedConfig)}
    changes = _changes(whole, wanted)
    if HEADS in wanted and getattr(whole, "backbone_config", None) is not None and whole.backbone_config.model_type == "timm_backbone":
        below["backbone_config"] = small_backbone()
    if how == "set":
        for name, value in {**changes, **below}.items():
            setattr(whole, name, value)
        return _repaired(whole)
    try:
        return _repaired(kind(**changes, **below))
    except Exception:
        if not below:
            raise
    return _repaired(kind(**changes, **{name: one.to_dict() for name, one in below.items()}))


def _found(config, names, default):
    """The first attribute with one of these names, in a configuration or those below it."""
    from transformers import PreTrainedConfig

    for name in names:
        value = getattr(config, name, None)
        if value is not None:
            return value
    for value in _pairs(config).values():
        if isinstance(value, PreTrainedConfig):
            deeper = _found(value, names, None)
            if deeper is not None:
                return deeper
    return default


def _edges(value):
    if isinstance(value, dict):
        value = value.get("height", value.get("shortest_edge", 64)), value.get("width", value.get("shortest_edge", 64))
    if isinstance(value, (list, tuple)):
        return (int(value[0]), int(value[-1]))
    return (int(value), int(value))


def inputs_of(torch, config, wanted):
    """One dict of arguments on the host, with new contents at each call."""
    vocabulary = min(200, int(_found(config, ("vocab_size",), 200)))
    height, width = _edges(_found(config, ("image_size", "img_size", "input_size"), 64))
    if wanted == "pixels-224":
        height = width = 224
    channels = int(_edges(_found(config, ("num_channels", "in_channels", "in_chans", "num_input_channels"), 3))[0])
    bins = int(_found(config, ("num_mel_bins", "input_feat_per_channel", "feature_size", "input_dim", "n_mels", "feature_projection_input_dim"), 80))
    frames = 2 * int(_found(config, ("max_source_positions",), 32))
    made = {}
    for part in wanted.split("+"):
        if part == "ids":
            made["input_ids"] = torch.randint(min(5, vocabulary - 1), vocabulary, (2, TEXT))
        elif part == "dec":
            made["decoder_input_ids"] = torch.randint(min(5, vocabulary - 1), vocabulary, (2, TEXT // 2))
        elif part in ("pixels", "pixels-224"):
            made["pixel_values"] = torch.randn(2, channels, height, width)
        elif part == "video":
            made["pixel_values"] = torch.randn(1, int(_found(config, ("num_frames",), 8)), channels, height, width)
        elif part == "values":
            made["input_values"] = torch.randn(2, 8000)
        elif part == "features":
            made["input_features"] = torch.randn(2, bins, frames)
        elif part == "features-t":
            made["input_features"] = torch.randn(2, min(frames, 64), bins)
        elif part == "bbox":
            made["bbox"] = torch.tensor([1, 2, 10, 12]).expand(2, TEXT, 4).contiguous()
    return made


def model_class(suite, name):
    import transformers

    mapping = transformers.MODEL_MAPPING if suite == "base" else transformers.MODEL_FOR_CAUSAL_LM_MAPPING
    kind = transformers.CONFIG_MAPPING[name]
    found = mapping[kind]
    found = found[0] if isinstance(found, (list, tuple)) else found
    if suite != "base" and found.config_class in kind.sub_configs.values():
        kind = found.config_class  # the part for text
    return kind, found


def _configured(suite, kind, size):
    config = config_of(kind, size)
    for one in (config, config.get_text_config()):
        for name, value in (("use_cache", suite == "generate"), ("is_decoder", True)):
            if isinstance(getattr(one, name, None), bool) and not (name == "is_decoder" and suite == "base"):
                with contextlib.suppress(Exception):
                    setattr(one, name, value)
        if suite == "generate" and isinstance(getattr(one, "sliding_window", None), int):
            one.sliding_window = WINDOW
    if getattr(config, "languages", None) and hasattr(config, "default_language"):
        config.default_language = list(config.languages)[0]
    return config


def make_transformers(torch, suite, name, recipe):
    size, _, wanted = recipe.partition("/")
    kind, made = model_class(suite, name)
    config = _configured(suite, kind, size)
    model = made(config)
    if suite == "generate":
        prepare_generation(model)
    return model, [inputs_of(torch, config, wanted) for _ in range(INPUT_COUNT)]


def prepare_generation(model):
    """The answer does not end before its tokens are complete."""
    model.generation_config.eos_token_id = None
    model.generation_config.pad_token_id = 0


def generated(model, inputs):
    return model.generate(**inputs, max_new_tokens=NEW_TOKENS, do_sample=False, cache_implementation="static", disable_compile=True)


# --- Models of vision


@contextlib.contextmanager
def quick_numbers(torch):
    """A context in which large weights get the same random numbers many times over, because a host draws numbers slowly."""
    drawn = {name: getattr(torch.Tensor, name) for name in ("normal_", "uniform_")}
    block = 65521  # a prime, so that rows differ

    def quick(name):
        def draw(self, *args, **kwargs):
            if self.numel() < 4 * block or not self.is_contiguous() or self.device.type != "cpu":
                return drawn[name](self, *args, **kwargs)
            flat = self.detach().view(-1)
            part = drawn[name](torch.empty(block, dtype=self.dtype), *args, **kwargs)
            whole = flat.numel() // block * block
            flat[:whole].view(-1, block).copy_(part)
            flat[whole:].copy_(part[:flat.numel() - whole])
            return self

        return draw

    for name in drawn:
        setattr(torch.Tensor, name, quick(name))
    try:
        yield
    finally:
        for name in drawn:
            delattr(torch.Tensor, name)


def make_timm(torch, name):
    import timm

    with quick_numbers(torch):
        model = timm.create_model(name, pretrained=False)
    size = model.pretrained_cfg.get("input_size", (3, 224, 224))
    return model, [{"x": torch.randn(2, *size)} for _ in range(INPUT_COUNT)]


VIDEO_SIZES = {"mvit": (3, 16, 224, 224), "s3d": (3, 16, 224, 224), "swin3d": (3, 8, 224, 224)}
IMAGE_SIZES = {"inception_v3": 299}


def make_torchvision(torch, name):
    import torchvision

    where = next(kind for kind in ("video", "segmentation", "models") if name in torchvision.models.list_models(module=vision_module(kind)))
    with quick_numbers(torch):
        model = torchvision.models.get_model(name, weights=None, **({"weights_backbone": None} if where == "segmentation" else {}))
    size = (3, IMAGE_SIZES.get(name, 224), IMAGE_SIZES.get(name, 224))
    if where == "video":
        size = next((one for word, one in VIDEO_SIZES.items() if word in name), (3, 8, 112, 112))
    return model, [{"x": torch.randn(2 if where == "models" else 1, *size)} for _ in range(INPUT_COUNT)]


def vision_module(kind):
    import torchvision

    return torchvision.models if kind == "models" else getattr(torchvision.models, kind)


# --- Each row


def make(torch, row, device):
    """(the model in eval mode, its three inputs) of a row, the same in each process."""
    suite, name = row.origin
    torch.manual_seed(zlib.crc32(f"{suite} {name}".encode()))
    if suite == "timm":
        model, inputs = make_timm(torch, name)
        first = next(iter(inspect.signature(model.forward).parameters))
        inputs = [{first: one["x"]} for one in inputs]
    elif suite == "torchvision":
        model, inputs = make_torchvision(torch, name)
        first = next(iter(inspect.signature(model.forward).parameters))
        inputs = [{first: one["x"]} for one in inputs]
    else:
        model, inputs = make_transformers(torch, suite, name, row.recipe)
    type_name, _, layout = row.type.partition("-")
    dtype = getattr(torch, type_name)
    model = model.eval().requires_grad_(False).to(device=device, dtype=dtype)

    def laid_out(tensor):
        tensor = tensor.to(device=device, dtype=dtype if tensor.is_floating_point() else None)
        if layout == "channels-last" and tensor.dim() in (4, 5):
            tensor = tensor.to(memory_format=torch.channels_last if tensor.dim() == 4 else torch.channels_last_3d)
        return tensor

    if layout == "channels-last":
        model = model.to(memory_format=torch.channels_last_3d if next(iter(inputs[0].values())).dim() == 5 else torch.channels_last)
    return model, [{name: laid_out(tensor) for name, tensor in one.items()} for one in inputs]


# --- Finding the rows


PARTS = ("_text", "_text_model", "_vision", "_vision_model", "_audio", "_encoder", "_decoder", "_language", "_qformer", "_vqmodel")


def candidates():
    """{suite: names} of all that could be rows, without trying them."""
    import timm
    import torchvision
    import transformers

    found = {"timm": timm.list_modules()}
    kinds = [vision_module(kind) for kind in ("models", "segmentation", "video")]
    found["torchvision"] = [name for kind in kinds for name in torchvision.models.list_models(module=kind)]
    for suite, mapping in (("causal", transformers.MODEL_FOR_CAUSAL_LM_MAPPING), ("base", transformers.MODEL_MAPPING)):
        names = {}
        for name, kind in transformers.CONFIG_MAPPING.items():
            if kind in mapping:
                with contextlib.suppress(Exception):
                    names.setdefault(model_class(suite, name)[1], name)  # one name for each class
        kinds = list(transformers.CONFIG_MAPPING.values()) if suite == "base" else []
        parts = {getattr(one, "model_type", "") for kind in kinds for one in kind.sub_configs.values()}
        found[suite] = sorted(name for name in names.values() if not (name in parts and name.endswith(PARTS)))
    return found


SMALLEST = ("atto", "femto", "pico", "nano", "xxtiny", "xxs", "xtiny", "xt", "xs", "tiny", "mini", "t", "small", "s", "light", "b0", "n", "m0",
            "18", "10t", "26t")


def find_timm(torch, module):
    """The smallest of a few models of a family."""
    import timm

    def rank(name):
        words = re.split(r"[_.]|(?<=[a-z])(?=\d)", name)
        place = min((SMALLEST.index(word) for word in words if word in SMALLEST), default=len(SMALLEST))
        size = timm.models.get_pretrained_cfg(name) if timm.models.is_model_pretrained(name) else None
        return (size is not None and max(size.input_size) > 256, place, len(name), name)

    names = sorted((name for name in timm.list_models(module=module) if not name.startswith("test_")), key=rank)
    sizes = {}
    for name in names[:5]:
        with contextlib.suppress(Exception), torch.device("meta"):
            sizes[name] = sum(one.numel() for one in timm.create_model(name, pretrained=False).parameters())
    return min(sizes, key=sizes.get) if sizes else next(iter(names), None)


def find_transformers(torch, suite, name):
    """(recipe or None, the last reason)."""
    kind, made = model_class(suite, name)
    known = set(inspect.signature(made.forward).parameters)
    needs = {"ids": "input_ids", "dec": "decoder_input_ids", "pixels": "pixel_values", "pixels-224": "pixel_values", "video": "pixel_values",
             "values": "input_values", "features": "input_features", "features-t": "input_features", "bbox": "bbox"}
    tries = [one for one in INPUTS if all(needs[part] in known for part in one.split("+"))]
    reasons = [] if tries else ["no input fits"]
    for size in SIZES:
        if not tries:
            break
        try:
            config = _configured(suite, kind, size)
            with contextlib.suppress(NotImplementedError):
                with torch.device("meta"):
                    count = sum(one.numel() for one in made(config).parameters())
                if count > MOST_PARAMETERS[size]:
                    reasons.append(f"{size}: {count / 1e6:.0f} M parameters")
                    continue
            config = _configured(suite, kind, size)
            model = made(config).eval()
        except Exception as error:
            reasons.append(f"{size}: {type(error).__name__}: {error}".splitlines()[0][:200])
            continue
        for wanted in tries:
            try:
                with torch.no_grad():
                    if tensors(torch, model(**inputs_of(torch, config, wanted))):
                        return f"{size}/{wanted}", ""
            except Exception as error:
                reasons.append(f"{size}/{wanted}: {type(error).__name__}: {error}".splitlines()[0][:200])
    return None, " | ".join(reasons)


def tensors(torch, value):
    """The tensors in a result."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [one for part in value.values() for one in tensors(torch, part)]
    if isinstance(value, (list, tuple)):
        return [one for part in value for one in tensors(torch, part)]
    return []


def find(torch, suite, name):
    """Rows (as lists) of a candidate, or a reason why there are none."""
    if suite == "timm":
        found = find_timm(torch, name)
        return {"rows": [["timm", found, "-"]] if found else [], "reason": "" if found else "no model in the module"}
    if suite == "torchvision":
        return {"rows": [["torchvision", name, "-"]]}
    recipe, reason = find_transformers(torch, suite, name)
    if recipe is None:
        return {"rows": [], "reason": reason}
    rows = [[suite, name, recipe]]
    if suite == "causal":
        try:
            model, inputs = make_transformers(torch, "generate", name, recipe)
            with torch.no_grad():
                generated(model.eval(), inputs[0])
            rows.append(["generate", name, recipe])
        except Exception as error:
            reason = f"generate: {type(error).__name__}: {error}".splitlines()[0][:200]
    return {"rows": rows, "reason": reason}


def all_rows(found):
    """The rows of the list, from what find() found: with the types, and with the compiled tenth."""
    rows = []
    for suite in ("timm", "torchvision", "causal", "base", "generate"):
        for at, (_, name, recipe) in enumerate(sorted(one for one in found if one[0] == suite)):
            types = ["float32"]
            if suite == "timm" and at % 3 == 0:
                types.append("bfloat16")
            if suite == "torchvision" and at % 2:
                types = ["float16-channels-last"]
            if suite == "causal":
                types.append("bfloat16")
            rows += [Row(suite, name, one, recipe) for one in types]
    whole = [one for one in rows if one.type == "float32" and one.suite != "generate"]
    return rows + [Row("compiled", f"{one.suite}/{one.name}", "float32", one.recipe) for one in whole[::10]]
