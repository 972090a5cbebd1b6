"""What is known of reasoning-gym's generators: the paper's settings, and whose scorer may be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PAPER: Mapping[str, Mapping[str, Any]] = {
    "arc_1d": {"min_size": 10, "max_size": 30, "num_train": 3},
    "base_conversion": {"min_base": 2, "max_base": 16, "min_value": 0, "max_value": 1000},
    "basic_arithmetic": {
        "min_terms": 2,
        "max_terms": 6,
        "min_digits": 1,
        "max_digits": 4,
        "operators": ["+", "-", "*", "/"],
        "allow_parentheses": True,
        "allow_negation": True,
    },
    "bf": {"difficulty": 1},
    "binary_matrix": {"min_n": 3, "max_n": 10, "p_zero": 0.25},
    "calendar_arithmetic": {
        "year": 2023,
        "tasks": ["count_days", "weekday_of_date", "is_leap_year", "recurring_event_day"],
        "offset_upper_bound": 100,
        "leap_year_range": 200,
    },
    "decimal_arithmetic": {
        "min_num_decimal_places": 1,
        "max_num_decimal_places": 3,
        "min_terms": 2,
        "max_terms": 6,
        "precision": 5,
    },
    "fraction_simplification": {
        "min_value": 1,
        "max_value": 100,
        "min_factor": 2,
        "max_factor": 100,
        "styles": ["plain", "latex_inline", "latex_frac"],
    },
    "propositional_logic": {
        "min_vars": 2,
        "max_vars": 4,
        "min_statements": 2,
        "max_statements": 4,
        "min_complexity": 1,
        "max_complexity": 3,
    },
}
"""Generator settings of the paper's public recipe."""

DEFAULT_SCORER = (
    "aiw",
    "binary_alternation",
    "caesar_cipher",
    "count_bits",
    "count_primes",
    "course_schedule",
    "gcd",
    "largest_island",
    "lcm",
    "leg_counting",
    "letter_counting",
    "maze",
    "modulo_grid",
    "number_filtering",
    "number_sequence",
    "rotate_matrix",
    "rotten_oranges",
    "simple_equations",
    "simple_geometry",
    "string_manipulation",
    "string_splitting",
    "string_synthesis",
    "syllogism",
    "word_sequence_reversal",
)
"""They score by `ProceduralDataset.score_answer`, which compares strings (equal, or contained) and does
nothing else. isomorphic_strings and ransom_note do too, but their questions depend on Python's hash seed."""

COMPARING_SCORER = (
    "chain_sum",
    "decimal_chain_sum",
    "family_relationships",
    "needle_haystack",
    "products",
    "sentence_reordering",
    "spell_backward",
    "word_sorting",
)
"""Their own scorers were read: they split, lower and compare strings, or read one number by `Decimal`."""

SAFE = frozenset({*PAPER, *DEFAULT_SCORER, *COMPARING_SCORER})
"""The generators that may score a stranger's text; all were read in 0.1.25, and tests hold them to it.

Of the nine, four have the default scorer; those of calendar_arithmetic (`int`), decimal_arithmetic
(`Decimal`) and fraction_simplification (`re`, `int`) only read numbers; propositional_logic has a parser of
its own, kept small here; binary_matrix evaluates the answer as Python, so its scorer is replaced here.
Missing on purpose, because they evaluate: spiral_matrix, string_insertion, n_queens, puzzle24, countdown, the
integrations, polynomials and codeio; because a short number can cost any time: coin_flip (`Fraction`),
power_function, prime_factorization, time_intervals. The rest has not been read."""
