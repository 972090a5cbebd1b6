"""Models behind one small protocol: a request goes in, an answer with its cost comes out.

    from shoal.models import Caller, ChatRequest, resolve

    model = resolve("local:smollm2")
    answer = await Caller(model).call(ChatRequest.ask("Write a warrior."), random.Random(1))
    print(answer.text, answer.usage.total)

Vendors' packages are optional and imported when a model that needs them is resolved. Specs are explained
in `specification`, retries in `calling`, costs in `spending`, keys in `keys`.
"""

from shoal.models.background import Background, run_now
from shoal.models.builtin import BuiltinModel
from shoal.models.calling import Caller, Patience, most_amounts
from shoal.models.cassette import Cassette, Recording, Replaying
from shoal.models.catalogue import Listed, catalogue, list_models
from shoal.models.endpoint import Endpoints
from shoal.models.llama import LlamaServer, LlamaSettings
from shoal.models.presets import PRESETS, Preset
from shoal.models.prices import Price, own_price, price_for
from shoal.models.protocol import ChatAnswer, ChatRequest, ChatSampling, Instant, Message, Model, Usage
from shoal.models.registry import check_model, local_settings, resolve
from shoal.models.scripted import Scripted
from shoal.models.specification import Options, Spec, parse_spec
from shoal.models.spending import Amounts, Spending

__all__ = [
    "PRESETS",
    "Amounts",
    "Background",
    "BuiltinModel",
    "Caller",
    "Cassette",
    "ChatAnswer",
    "ChatRequest",
    "ChatSampling",
    "Endpoints",
    "Instant",
    "Listed",
    "LlamaServer",
    "LlamaSettings",
    "Message",
    "Model",
    "Options",
    "Patience",
    "Preset",
    "Price",
    "Recording",
    "Replaying",
    "Scripted",
    "Spec",
    "Spending",
    "Usage",
    "catalogue",
    "check_model",
    "list_models",
    "local_settings",
    "most_amounts",
    "own_price",
    "parse_spec",
    "price_for",
    "resolve",
    "run_now",
]
