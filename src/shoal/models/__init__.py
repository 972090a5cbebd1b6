"""Models behind one small protocol: a request goes in, an answer with its cost comes out.

    from shoal.models import Caller, Request, resolve

    model = resolve("local:smollm2")
    answer = await Caller(model).call(Request.ask("Write a warrior."), random.Random(1))
    print(answer.text, answer.usage.total)

Vendors' packages are optional and imported when a model that needs them is resolved. Specs are explained
in `specification`, retries in `calling`, budgets in `budget`, keys in `keys`.
"""

from shoal.models.background import Background, run_now
from shoal.models.budget import Amounts, Budget, BudgetRecord, Limits, Reserved, Settled
from shoal.models.builtin import builtin_names, register_builtin
from shoal.models.calling import Caller, Ledger, Policy
from shoal.models.cassette import Cassette, Recording, Replaying
from shoal.models.catalogue import Listed, catalogue, list_models
from shoal.models.endpoint import Endpoints
from shoal.models.llama import LlamaServer, LlamaSettings
from shoal.models.presets import PRESETS, Preset
from shoal.models.prices import Price, own_price, price_for
from shoal.models.protocol import Answer, Instant, Message, Model, Request, Sampling, Usage
from shoal.models.registry import check_model, local_settings, resolve
from shoal.models.scripted import Scripted
from shoal.models.specification import Options, Spec, parse_spec

__all__ = [
    "PRESETS",
    "Amounts",
    "Answer",
    "Background",
    "Budget",
    "BudgetRecord",
    "Caller",
    "Cassette",
    "Endpoints",
    "Instant",
    "Ledger",
    "Limits",
    "Listed",
    "LlamaServer",
    "LlamaSettings",
    "Message",
    "Model",
    "Options",
    "Policy",
    "Preset",
    "Price",
    "Recording",
    "Replaying",
    "Request",
    "Reserved",
    "Sampling",
    "Scripted",
    "Settled",
    "Spec",
    "Usage",
    "builtin_names",
    "catalogue",
    "check_model",
    "list_models",
    "local_settings",
    "own_price",
    "parse_spec",
    "price_for",
    "register_builtin",
    "resolve",
    "run_now",
]
