"""The checkpoint of a language model: a model folder that transformers opens, with the state of the training
beside the weights. No file in it can hold code."""

from __future__ import annotations

import copy
import os
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from shoal.errors import RunError
from shoal.models.remote import quote
from shoal.policy.weights import Loaded, load_like, quiet

FORMAT = 1
STATE = "training.json"
OPTIMISER = "optimiser.safetensors"
ADAPTER = "adapter.safetensors"


class TrainingState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`format` changes if old checkpoints cannot be read any more."""

    model: str
    tokenizer: str
    steps: int
    adapter: bool
    format: int = FORMAT


def write(folder: Path, loaded: Loaded, optimiser: Any | None, state: TrainingState) -> None:
    """Replaces `folder` by a checkpoint; RunError, with the old one still there, if it cannot."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as room:
            new = Path(room, "new")
            plain = loaded.model
            if loaded.adapted is not None:
                # Merged into a copy: merging and unmerging in place would not give the same bits back.
                plain = copy.deepcopy(loaded.adapted).merge_and_unload()
            with quiet():
                plain.save_pretrained(new)
                loaded.tokenizer.save_pretrained(new)
            if loaded.adapted is not None:
                adapters = {name: weight.detach().contiguous() for name, weight in loaded.trainable()}
                save_file(adapters, new / ADAPTER)
            states = {} if optimiser is None else optimiser.state
            tensors = {
                f"{name}|{quantity}": value.detach().contiguous()
                for name, weight in loaded.trainable()
                for quantity, value in states.get(weight, {}).items()
            }
            save_file(tensors, new / OPTIMISER)
            (new / STATE).write_bytes(msgspec.json.encode(state))
            _swap(new, folder, Path(room, "old"))
    except (OSError, SafetensorError) as error:
        raise RunError(f"the policy cannot be saved to {folder} ({error})") from None


def read(folder: Path, loaded: Loaded, tokenizer: str) -> tuple[dict[str, dict[str, Any]], TrainingState]:
    """Puts the weights of a checkpoint into the model; returns the optimiser's state by parameter, and the
    training state. RunError, with the model as it was, if this is no checkpoint of such a policy."""
    try:
        state = msgspec.json.decode((folder / STATE).read_bytes(), type=TrainingState)
        tensors = load_file(folder / OPTIMISER)
        fits = state.tokenizer == tokenizer and state.adapter == (loaded.adapted is not None)
        if not fits or state.format != FORMAT:
            raise RunError(f"{folder} is a checkpoint of {state.model}, which is not this policy")
        if loaded.adapted is not None:
            _fill(dict(loaded.trainable()), load_file(folder / ADAPTER), folder)
        else:
            found = load_like(loaded.model, folder)
            _fill(loaded.model.state_dict(), found.state_dict(), folder)
    except (OSError, ValueError, SafetensorError, msgspec.MsgspecError) as error:
        raise RunError(f"{folder} is not a checkpoint that can be read ({quote(str(error))})") from None
    by_name: dict[str, dict[str, Any]] = {}
    for key, tensor in tensors.items():
        name, _, quantity = key.rpartition("|")
        by_name.setdefault(name, {})[quantity] = tensor
    return by_name, state


def _fill(there: dict[str, Any], found: dict[str, Any], folder: Path) -> None:
    wrong = [name for name, weight in there.items() if name not in found or found[name].shape != weight.shape]
    if wrong:
        raise RunError(f"{folder} does not hold the weights of this policy: {wrong[0]} is missing or another")
    with torch.no_grad():
        for name, weight in there.items():
            weight.copy_(found[name])


def _swap(new: Path, folder: Path, old: Path) -> None:
    was_there = folder.exists()
    if was_there:
        os.replace(folder, old)
    try:
        os.replace(new, folder)
    except OSError:
        if was_there:
            os.replace(old, folder)
        raise
