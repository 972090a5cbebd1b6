from shoal.models.caller import (
    Amounts as Amounts,
    Background as Background,
    Caller as Caller,
    Patience as Patience,
    Spending as Spending,
    most_amounts as most_amounts,
    run_now as run_now,
)
from shoal.models.cassette import Cassette as Cassette, Recording as Recording
from shoal.models.endpoint import Endpoints as Endpoints
from shoal.models.instant import BuiltinModel as BuiltinModel, Scripted as Scripted
from shoal.models.llama import LlamaServer as LlamaServer, LlamaSettings as LlamaSettings
from shoal.models.presets import PRESETS as PRESETS
from shoal.models.prices import Price as Price, own_price as own_price, price_for as price_for
from shoal.models.protocol import (
    ChatAnswer as ChatAnswer,
    ChatRequest as ChatRequest,
    ChatSampling as ChatSampling,
    Message as Message,
    Model as Model,
    Usage as Usage,
)
from shoal.models.registry import (
    Listed as Listed,
    catalogue as catalogue,
    check_model as check_model,
    local_settings as local_settings,
    open_model as open_model,
)
from shoal.models.specification import Spec as Spec, parse_spec as parse_spec
