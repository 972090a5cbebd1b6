"""The weights of a causal language model for training: a folder, a GGUF file or a preset.

Only local files are read and no code from them is executed. A GGUF file is unpacked once into the cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.errors import ConfigError
from shoal.models.cache import cache_folder, made_whole, use
from shoal.models.presets import PRESETS, file_digest
from shoal.models.registry import check_model, local_settings
from shoal.models.remote import import_package, quote
from shoal.models.specification import Spec
from shoal.policy.base import Precision

CONVERSION = 1
"""Part of the name of unpacked folders: with a new number all files are unpacked anew."""
DEVICES = ("auto", "cpu", "cuda", "mps")
LOCAL = {"local_files_only": True, "trust_remote_code": False}


@dataclass(frozen=True, slots=True)
class Loaded:
    """`model` is called, with adapters in place where `adapted` (peft's wrapper of the same) is set. `ends`:
    the tokens that end a text; `end`: the one to write. `begin`: the token that prompts must begin with."""

    folder: Path
    model: Any
    tokenizer: Any
    adapted: Any | None
    end: int
    ends: frozenset[int]
    begin: int | None
    room: int

    def trainable(self) -> list[tuple[str, Any]]:
        """The weights that an optimiser changes, in a fixed order."""
        return [(name, weight) for name, weight in self.model.named_parameters() if weight.requires_grad]


def weights_folder(name: str) -> Path:
    """The model folder that `local:name` stands for, unpacked if need be."""
    preset = PRESETS.get(name)
    if preset is not None and (folder := _unpacked(name, preset.sha256)).is_dir():
        return folder  # the digest is part of its name, so the file need not be read
    found = local_settings(Spec("local", name))
    if isinstance(found, Path):
        return found
    file = Path(found.path)
    folder = _unpacked(found.name, file_digest(file) if preset is None else preset.sha256)
    if not folder.is_dir():
        _unpack(file, folder, f"local:{name}")
    return folder


def check_weights(name: str) -> None:
    """ConfigError if `weights_folder` would find nothing; no file is read."""
    preset = PRESETS.get(name)
    if preset is None or not _unpacked(name, preset.sha256).is_dir():
        check_model(f"local:{name}")


def unpacked_preset(name: str) -> Path | None:
    """The folder of the unpacked weights of `local:name`; None unless `name` is an installed preset."""
    preset = PRESETS.get(name)
    return None if preset is None or preset.find() is None else _unpacked(name, preset.sha256)


def load(
    folder: Path, spec: str, *, device: str = "auto", lora: int = 0, precision: Precision = "auto"
) -> Loaded:
    """The model in a folder, ready to sample and learn; `lora` above 0 trains adapters of that rank instead
    of the weights. ConfigError in one line says what is missing."""
    torch, transformers = (import_package(name, "train", spec) for name in ("torch", "transformers"))
    if not (folder / "config.json").is_file():
        raise ConfigError(f"{folder} has no config.json: name a folder that save_pretrained wrote")
    chosen = _choose_device(torch, device, spec)
    half = _is_half(torch, chosen, precision, lora, spec)
    try:
        with quiet():
            tokenizer = transformers.AutoTokenizer.from_pretrained(str(use(folder)), **LOCAL)
            model, info = transformers.AutoModelForCausalLM.from_pretrained(
                str(folder),
                dtype=torch.bfloat16 if half else torch.float32,
                attn_implementation=_attention(transformers, folder),
                output_loading_info=True,
                **LOCAL,
            )
    except (OSError, ValueError, KeyError, RuntimeError, ImportError) as error:
        problem = quote(str(error))
        raise ConfigError(f"{folder} cannot be loaded as a causal language model ({problem})") from None
    lacking = sorted(map(str, info["missing_keys"])) + sorted(map(str, info["mismatched_keys"]))
    if lacking:
        # transformers would go on with random numbers.
        raise ConfigError(f"{folder} lacks {len(lacking)} weights of its model, such as {lacking[0]}")
    model.to(chosen).eval()
    if not _is_causal(torch, model):
        raise ConfigError(f"{folder} is not a causal language model ({type(model).__name__})")
    end, ends = _ends(model, tokenizer, folder)
    rows = int(model.get_input_embeddings().weight.shape[0])
    if len(tokenizer) > rows:
        raise ConfigError(f"{folder}: its tokenizer has {len(tokenizer)} tokens, its model only {rows}")
    room = getattr(model.config, "max_position_embeddings", None) or getattr(model.config, "n_positions", 0)
    begin = tokenizer.bos_token_id if str(model.config.model_type).startswith("gemma") else None
    adapted = _adapt(model, lora, spec) if lora > 0 else None
    return Loaded(folder, model, tokenizer, adapted, end, ends, begin, int(room or 1 << 30))


def load_like(model: Any, folder: Path) -> Any:
    """The weights in a folder, of the type and on the device of a model that is there already."""
    transformers = import_package("transformers", "train", str(folder))
    there, attention = next(model.parameters()), model.config._attn_implementation
    with quiet():
        found = transformers.AutoModelForCausalLM.from_pretrained(
            str(folder), dtype=there.dtype, attn_implementation=attention, **LOCAL
        )
    return found.to(there.device).eval()


@contextmanager
def quiet() -> Iterator[None]:
    """Hides the progress bars of transformers: a command's output is its own."""
    logging = import_package("transformers.utils.logging", "train", "this policy")
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _attention(transformers: Any, folder: Path) -> str | None:
    """Fused attention if the architecture has it; None: the architecture's default."""
    config = transformers.AutoConfig.from_pretrained(str(folder), **LOCAL)
    kind = transformers.MODEL_FOR_CAUSAL_LM_MAPPING.get(type(config), None)
    return "sdpa" if getattr(kind, "_supports_sdpa", False) else None


def _is_causal(torch: Any, model: Any) -> bool:
    """Whether a later token changes nothing that was computed before it."""
    device = next(model.parameters()).device
    with torch.inference_mode():
        texts = [torch.tensor([[1, 2, last]], device=device) for last in (3, 4)]
        one, other = (model(input_ids=text).logits[0, :2].float() for text in texts)
    most = 1e-5 if one.dtype == next(model.parameters()).dtype else 1e-2
    return bool((one - other).abs().max() <= most * one.abs().max())


def _choose_device(torch: Any, device: str, spec: str) -> Any:
    if device not in DEVICES:
        raise ConfigError(f"{spec}: the device is {device!r}: choose one of {', '.join(DEVICES)}")
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if device == "auto":
        return torch.device("cuda" if there["cuda"] else "mps" if there["mps"] else "cpu")
    if not there[device]:
        raise ConfigError(f"{spec}: this machine or this torch has no {device}: choose auto or cpu")
    return torch.device(device)


def _is_half(torch: Any, device: Any, precision: Precision, lora: int, spec: str) -> bool:
    """Whether the weights are kept in bf16; ConfigError if they cannot be."""
    if precision == "fp32":
        return False
    if precision == "auto":
        # Half precision is slower than single on processors without units for it, and too coarse for the
        # small steps of a whole model in training. Weights that rest below adapters may have it on a card.
        return lora > 0 and device.type == "cuda" and bool(torch.cuda.is_bf16_supported())
    try:
        one = torch.ones(2, 2, dtype=torch.bfloat16, device=device)
        works = device.type != "cuda" or torch.cuda.is_bf16_supported()
        works = works and bool((one @ one).float().isfinite().all())
    except (RuntimeError, TypeError):
        works = False
    if not works:
        raise ConfigError(f"precision: {device} cannot compute in bf16 for {spec}: choose fp32 or auto")
    return True


def _ends(model: Any, tokenizer: Any, folder: Path) -> tuple[int, frozenset[int]]:
    end = tokenizer.eos_token_id
    if end is None:
        raise ConfigError(f"{folder}: its tokenizer has no end token: set eos_token in tokenizer_config.json")
    more = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    others = more if isinstance(more, list | tuple) else [more]
    return int(end), frozenset(int(one) for one in (end, *others) if one is not None)


def _adapt(model: Any, rank: int, spec: str) -> Any:
    peft, torch = (import_package(name, "train", spec) for name in ("peft", "torch"))
    settings = peft.LoraConfig(
        r=rank, lora_alpha=2 * rank, lora_dropout=0.0, target_modules="all-linear", task_type="CAUSAL_LM"
    )
    # Adapters start from random numbers; a fixed seed makes two openings of the same spec alike.
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return peft.get_peft_model(model, settings).eval()


def _unpacked(name: str, digest: str) -> Path:
    return cache_folder() / "policies" / f"{Path(name).name}-{digest[:16]}-{CONVERSION}"


def _unpack(file: Path, folder: Path, spec: str) -> None:
    needed = ("torch", "transformers", "gguf")
    torch, transformers, _ = (import_package(name, "train", spec) for name in needed)
    source = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name, **LOCAL}
    try:
        with quiet():
            tokenizer = transformers.AutoTokenizer.from_pretrained(**source)
            quantised = transformers.AutoModelForCausalLM.from_pretrained(dtype=torch.float32, **source)
    except (OSError, ValueError, KeyError, RuntimeError, ImportError, NotImplementedError) as error:
        raise ConfigError(f"{file} cannot be unpacked for training ({quote(str(error))})") from None
    # transformers does not save weights whose config says that they are packed.
    config = quantised.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    plain = type(quantised)(config)
    plain.load_state_dict(quantised.state_dict())
    plain.generation_config = quantised.generation_config
    with made_whole(folder) as aside, quiet():
        plain.save_pretrained(aside)
        tokenizer.save_pretrained(aside)
