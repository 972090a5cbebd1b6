"""Models behind one small protocol: a request goes in, an answer with its cost comes out.

    from shoal.models import Caller, ChatRequest, resolve

    model = resolve("local:smollm2")
    answer = await Caller(model).call(ChatRequest.ask("Write a warrior."), random.Random(1))
    print(answer.text, answer.usage.total)

Vendors' packages are optional. They are imported when a model that needs them is resolved.
"""

from shoal.models.caller import Amounts, Background, Caller, Patience, Spending, most_amounts, run_now
from shoal.models.cassette import Cassette, Recording
from shoal.models.catalogue import Listed, catalogue
from shoal.models.endpoint import Endpoints
from shoal.models.instant import BuiltinModel, Scripted
from shoal.models.llama import LlamaServer, LlamaSettings
from shoal.models.presets import PRESETS
from shoal.models.prices import Price, own_price, price_for
from shoal.models.protocol import ChatAnswer, ChatRequest, ChatSampling, Message, Model, Usage
from shoal.models.registry import check_model, local_settings, resolve
from shoal.models.specification import Spec, parse_spec

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
    "Listed",
    "LlamaServer",
    "LlamaSettings",
    "Message",
    "Model",
    "Patience",
    "Price",
    "Recording",
    "Scripted",
    "Spec",
    "Spending",
    "Usage",
    "catalogue",
    "check_model",
    "local_settings",
    "most_amounts",
    "own_price",
    "parse_spec",
    "price_for",
    "resolve",
    "run_now",
]
