"""Models behind one small protocol: a request goes in, an answer with its cost comes out.

    from shoal.models import Caller, ChatRequest, open_model

    model = open_model("local:smollm2")
    answer = await Caller(model).call(ChatRequest.ask("Write a warrior."), random.Random(1))
    print(answer.text, answer.usage.total)

Vendors' packages are optional. They are imported when a model that needs them is resolved.
"""

from shoal.lazy import lazily

__all__, __getattr__ = lazily(__name__, __file__)
