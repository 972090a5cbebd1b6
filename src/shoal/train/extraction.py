"""The answer within what a policy wrote. Time is linear in the text, and any text gives an answer."""

from __future__ import annotations

from typing import Literal

Mode = Literal["lenient", "tags"]

WHOLE_TEXT = ("corewar:",)
"""Families whose answers have many lines."""

MOST_TEXT = 1 << 18
"""Characters looked at, the last ones: the answer comes at the end."""
OPEN, CLOSE = "<answer>", "</answer>"


def extract_answer(text: str, mode: Mode = "lenient") -> str:
    """The content of the last complete <answer>…</answer> span, without blanks around it.

    Without such a span it is the first line of the text in mode "lenient", so that small models need no tags,
    and nothing ("") in mode "tags".
    """
    tail = text[-MOST_TEXT:]
    end = tail.rfind(CLOSE)
    if end >= 0:
        start = tail.rfind(OPEN, 0, end)
        if start >= 0:
            return tail[start + len(OPEN) : end].strip()
    if mode == "tags":
        return ""
    return text[:MOST_TEXT].strip().partition("\n")[0].strip()


def answer_within(text: str, family: str, mode: Mode) -> str:
    """The answer to a task of this family: the whole text, where a program is asked for and there are no
    tags."""
    if family.startswith(WHOLE_TEXT) and mode != "tags" and CLOSE not in text:
        return text[:MOST_TEXT].strip()
    return extract_answer(text, mode)
