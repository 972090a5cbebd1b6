"""Prompts: templates with a name and a version, filled in at `{{places}}`. A prompt records the id of every
template in it, so that runs can be told apart by their prompts. The blind mode shows the parent alone, as in
the DEI and DRQ papers; the informed mode adds its score and its losses."""

from __future__ import annotations

import hashlib
import re
from importlib import resources

import msgspec

from shoal.errors import ConfigError

_PLACE = re.compile(r"\{\{(\w+)\}\}")
_HEADER = re.compile(r"\A<!-- version (\d{1,9}) -->\n+")

PROGRAM_SHOWN = 1 << 14
"""Characters of a program or an error message that a prompt shows."""


class Template(msgspec.Struct, frozen=True):
    """A text, with a version if it states one. `render` fills every place exactly once and nothing else."""

    name: str  # of its file, without the ending
    text: str  # with the places
    version: int | None = None  # without one its digest tells it from others

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def id(self) -> str:
        version = "" if self.version is None else f"@{self.version}"
        return f"{self.name}{version}:{self.digest[:12]}"

    @property
    def places(self) -> frozenset[str]:
        return frozenset(_PLACE.findall(self.text))

    def render(self, **values: str) -> str:
        if set(values) != self.places:
            raise ConfigError(
                f"prompt {self.name!r} has the places {sorted(self.places)}, and was given {sorted(values)}"
            )
        # One pass: a value may itself contain braces.
        return _PLACE.sub(lambda place: values[place.group(1)], self.text)


class Prompt(msgspec.Struct, frozen=True):
    """One stateless question to a model: the ids of its `templates`, and the whole texts that fill them."""

    task: str
    system: str
    user: str
    templates: tuple[str, ...]
    values: dict[str, str] = {}


PLACES: dict[str, tuple[str, ...]] = {
    "system": (),
    "new": (),
    "mutate": ("program",),
    "informed": ("program", "feedback"),
    "repair": ("program", "problems"),
}
"""The places of each text."""


class Prompts(msgspec.Struct, frozen=True):
    """The texts of a domain, with the places of `PLACES`."""

    system: Template
    new: Template
    mutate: Template
    informed: Template
    repair: Template

    def ask_new(self) -> Prompt:
        return self._fill("new", self.new)

    def ask_mutate(self, program: str, feedback: str | None = None) -> Prompt:
        """Blind without `feedback`, informed with it."""
        if feedback is None:
            return self._fill("mutate", self.mutate, program=program)
        return self._fill("mutate", self.informed, program=program, feedback=feedback)

    def ask_repair(self, program: str, problems: str) -> Prompt:
        return self._fill("repair", self.repair, program=program, problems=problems)

    def _fill(self, task: str, template: Template, **values: str) -> Prompt:
        user = template.render(**{name: _shown(text) for name, text in values.items()})
        return Prompt(task, self.system.render(), user, (self.system.id, template.id), values)


def parse_template(name: str, text: str) -> Template:
    """A file of a user: a first line `<!-- version N -->` states a version, and may be missing."""
    header = _HEADER.match(text)
    return Template(name, text) if header is None else _without_header(name, text, header)


def fitted(part: str, template: Template, source: str) -> Template:
    """A user's text as this part; ConfigError, behind `source`, if it is none. A place that it lacks is added
    at its end, behind two empty lines, as DRQ (Digital Red Queen) adds the parent."""
    text = template.text
    if not text.strip():
        raise ConfigError(f"{source}: the prompt is empty")
    found, wanted = set(_PLACE.findall(text)), PLACES[part]
    if unknown := sorted(found - set(wanted)):
        known = ", ".join(f"{{{{{place}}}}}" for place in wanted) or "none"
        raise ConfigError(
            f"{source}: {{{{{unknown[0]}}}}} is no place of the prompt {part}: known are {known}"
        )
    for place in wanted:
        if place not in found:
            text = f"{text}\n\n\n{{{{{place}}}}}"
    return msgspec.structs.replace(template, text=text)


def _without_header(name: str, text: str, header: re.Match[str]) -> Template:
    return Template(name, text[header.end() :], int(header.group(1)))


def load_template(name: str) -> Template:
    """A text that comes with the package; its first line is `<!-- version N -->`."""
    file = resources.files(__name__) / f"{name}.md"
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"no prompt is called {name!r}") from None
    header = _HEADER.match(text)
    if header is None:
        raise ConfigError(f"prompt {name!r} does not begin with <!-- version N -->")
    return _without_header(name, text, header)


def load_prompts(domain: str) -> Prompts:
    """The texts `DOMAIN-system.md`, `-new.md`, `-mutate.md`, `-informed.md` and `-repair.md`."""
    return Prompts(*(load_template(f"{domain}-{part}") for part in Prompts.__struct_fields__))


def generic_prompts(domain: str, description: str = "", version: int = 1) -> Prompts:
    """Texts for a domain that has none of its own; `description` explains its language to a model."""
    about = description or f"You write programs of the domain {domain}."
    texts = {
        "system": f"{about}\nAnswer with exactly one program in one fenced block and nothing else.",
        "new": "Write a new program.",
        "mutate": "Change this program so that it does better:\n\n```\n{{program}}\n```",
        "informed": "Change this program so that it does better:\n\n```\n{{program}}\n```\n\n{{feedback}}",
        "repair": "This program is not valid:\n\n```\n{{program}}\n```\n\n{{problems}}\n\nCorrect it.",
    }
    return Prompts(**{part: Template(f"{domain}-{part}", text, version) for part, text in texts.items()})


def redcode_grammar() -> str:
    """A GBNF grammar (llama.cpp's form) of which every sentence assembles under the '94 rules."""
    return (resources.files(__name__) / "redcode.gbnf").read_text(encoding="utf-8")


def _shown(text: str) -> str:
    if len(text) <= PROGRAM_SHOWN:
        return text.strip("\n")
    return text[:PROGRAM_SHOWN] + "\n…"
