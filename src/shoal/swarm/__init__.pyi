from shoal.swarm.accounts import Account as Account, Accounts as Accounts, Credit as Credit
from shoal.swarm.authors import Peer as Peer, Place as Place, Received as Received
from shoal.swarm.exchange import Exchange as Exchange, Receipt as Receipt
from shoal.swarm.identity import Identity as Identity, NodeId as NodeId, short_name as short_name
from shoal.swarm.kinds import Kind as Kind, Kinds as Kinds
from shoal.swarm.live import LiveExchange as LiveExchange
from shoal.swarm.rejection import Rejection as Rejection
from shoal.swarm.settings import ExchangeSettings as ExchangeSettings
from shoal.swarm.transport.memory import MemoryHub as MemoryHub, MemoryTransport as MemoryTransport
