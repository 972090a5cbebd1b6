"""One step of a policy, sampling and update, against TRL's trainer on the same questions.

Processor time, one thread. Both alternate in one process, so that what else the machine does meets both. All
groups have advantages: nothing is skipped. On the small model TRL's better micro-batch size of two counts; on
the large one its micro-batch is one group, like ours.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from bench.row import Row
from bench.train_sharing import measure as measure_sharing
from shoal.policy.advantage import advantages
from shoal.policy.base import Learning, LearningGroup, Sampling
from shoal.policy.language_model import LanguageModelPolicy
from shoal.policy.weights import load, weights_folder

GROUP = 8
WORDS = (
    "count legs of every spider in this house and add them to those which the ants have then say how many "
    "apples seven children eat when each of them takes two more than the day before until Sunday comes"
).split()


@dataclass(frozen=True, slots=True)
class Shape:
    """`prompt` in tokens, exactly; `micro_groups` is what we compute at a time."""

    prompts: int
    prompt: int
    new_tokens: int
    micro_groups: int

    def __str__(self) -> str:
        return f"{self.prompts} x {GROUP}, prompt {self.prompt}, {self.new_tokens} new"


def small_model(folder: Path) -> Path:
    """A Llama of 1.1 million parameters with a vocabulary of 400."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=["<eos>"], initial_alphabet=alphabet)
    source = random.Random(0)
    tokenizer.train_from_iterator((" ".join(source.choices(WORDS, k=30)) for _ in range(200)), trainer)
    config = transformers.LlamaConfig(
        vocab_size=400,
        hidden_size=128,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        eos_token_id=0,
        bos_token_id=None,
        pad_token_id=0,
    )
    torch.manual_seed(0)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<eos>", pad_token="<eos>"
    ).save_pretrained(folder)
    return folder


def questions(tokenizer: Any, shape: Shape) -> list[str]:
    """Different texts that have the wished number of tokens."""
    source = random.Random(1)
    found = []
    while len(found) < shape.prompts:
        ids = tokenizer.encode(" ".join(source.choices(WORDS, k=shape.prompt)), add_special_tokens=False)
        text = tokenizer.decode(ids[: shape.prompt])
        if len(tokenizer.encode(text, add_special_tokens=False)) == shape.prompt:
            found.append(text)
    return found


class Ours:
    """A policy that takes steps on given questions with rewards drawn at random."""

    def __init__(self, folder: Path, shape: Shape) -> None:
        self._policy = LanguageModelPolicy("local:bench", load(folder, "local:bench", device="cpu"), str)
        self._questions = questions(self._policy._loaded.tokenizer, shape)
        self._shape = shape
        self._source = random.Random(2)
        self.parts: list[tuple[float, float]] = []
        self.tokens: list[int] = []

    def step(self) -> float:
        """Seconds of processor time."""
        began = time.process_time()
        sampling = Sampling(max_new_tokens=self._shape.new_tokens)
        sampled = self._policy.sample(self._questions, GROUP, sampling, len(self.parts))
        between = time.process_time()
        rewards = [[self._source.random() for _ in rows] for rows in sampled]
        groups = [
            LearningGroup(question, rows, given)
            for question, rows, given in zip(self._questions, sampled, advantages(rewards), strict=True)
        ]
        learnt = self._policy.learn(groups, Learning(micro_groups=self._shape.micro_groups), 1.0)
        ended = time.process_time()
        self.parts.append((between - began, ended - between))
        self.tokens.append(learnt.tokens)
        return ended - began


def against_trl(
    folder: Path, shape: Shape, micro_batch: int, steps: int, warm_up: int
) -> tuple[float, float]:
    """Median processor seconds of our step and of TRL's, taken in turns."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    ours = Ours(folder, shape)
    ours_seconds: list[float] = []
    trl_seconds: list[float] = []

    class Turns(transformers.TrainerCallback):  # type: ignore[misc]
        began = 0.0

        def on_step_begin(self, *_: Any, **__: Any) -> None:
            self.began = time.process_time()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            trl_seconds.append(time.process_time() - self.began)
            ours_seconds.append(ours.step())

    source = random.Random(3)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with tempfile.TemporaryDirectory(prefix="shoal-bench") as place:
        settings = GRPOConfig(
            output_dir=place,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            per_device_train_batch_size=micro_batch,
            gradient_accumulation_steps=shape.prompts * GROUP // micro_batch,
            num_generations=GROUP,
            max_completion_length=shape.new_tokens,
            beta=0.0,
            num_iterations=1,
            max_steps=steps + warm_up,
            learning_rate=5e-4,
            report_to=[],
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
        )
        trainer = GRPOTrainer(
            model=transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32),
            args=settings,
            reward_funcs=lambda completions, **_: [source.random() for _ in completions],
            train_dataset=Dataset.from_dict({"prompt": questions(tokenizer, shape)}),
            processing_class=tokenizer,
            callbacks=[Turns()],
        )
        trainer.train()
    for name, one in (("ours", ours_seconds), ("TRL", trl_seconds)):
        print(f"  {shape}, micro-batch {micro_batch}, {name}: {' '.join(f'{value:.2f}' for value in one)}")
    print(f"  of ours, sampling {median(one for one, _ in ours.parts[warm_up:]):.2f}", end="")
    print(f", update {median(one for _, one in ours.parts[warm_up:]):.2f}; tokens {ours.tokens}")
    return median(ours_seconds[warm_up:]), median(trl_seconds[warm_up:])


def best_of_trl(folder: Path, shape: Shape, micro_batches: list[int], steps: int, warm_up: int) -> float:
    """Our time over TRL's at the micro-batch size that suits it best."""
    pairs = [against_trl(folder, shape, size, steps, warm_up) for size in micro_batches]
    return min(ours for ours, _ in pairs) / min(trl for _, trl in pairs)


def peak_memory(name: str, shape: Shape) -> float:
    """Gigabytes that a process of its own needs at most for one step, libraries and weights included. Linux
    only: getrusage would count what the process that started it held."""
    code = (
        "import json, sys, torch; torch.set_num_threads(1); from pathlib import Path; "
        "from bench.train import Ours, Shape; given = json.loads(sys.argv[1]); "
        "Ours(Path(given['folder']), Shape(*given['shape'])).step(); "
        "lines = Path('/proc/self/status').read_text().splitlines(); "
        "print(next(line for line in lines if line.startswith('VmHWM')).split()[1])"
    )
    given = {
        "folder": str(weights_folder(name)),
        "shape": [shape.prompts, shape.prompt, shape.new_tokens, shape.micro_groups],
    }
    asked = [sys.executable, "-c", code, json.dumps(given)]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1]) / (1 << 20)


def measure_small() -> list[Row]:
    peer = "TRL's GRPOTrainer, best of two micro-batches, processor time"
    with tempfile.TemporaryDirectory(prefix="shoal-bench") as place:
        folder = small_model(Path(place))
        usual, long_prompt, long_answer = (
            best_of_trl(folder, shape, sizes, steps, 1)
            for shape, sizes, steps in (
                (Shape(8, 80, 32, 8), [8, 64], 4),
                (Shape(8, 240, 32, 8), [8, 64], 2),
                (Shape(8, 50, 128, 8), [8, 64], 2),
            )
        )
    return [
        Row("train.vs_trl.tiny", usual, "times its time (8 x 8, prompt 80, 32 new)", peer, "<= 0.45"),
        Row("train.vs_trl.tiny_long_prompt", long_prompt, "times its time (prompt 240, 32 new)", peer),
        Row("train.vs_trl.tiny_long_answer", long_answer, "times its time (prompt 50, 128 new)", peer),
    ]


def measure_large() -> list[Row]:
    peer = "TRL's GRPOTrainer, processor time"
    ratio = best_of_trl(weights_folder("smollm2"), Shape(8, 88, 32, 1), [8], 2, 0)
    return [
        Row("train.vs_trl.smollm2", ratio, "times its time (8 x 8, prompt 88, 32 new)", peer, "<= 0.40"),
        Row("train.memory.smollm2_4x8", peak_memory("smollm2", Shape(4, 88, 32, 1)), "GB at most, 4 groups"),
        Row("train.memory.smollm2_8x8", peak_memory("smollm2", Shape(8, 88, 32, 1)), "GB at most, 8 groups"),
    ]


def measure() -> list[Row]:
    torch.set_num_threads(1)
    return measure_sharing() + measure_small() + measure_large()
