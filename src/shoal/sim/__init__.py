"""The simulator: a whole swarm in one process and in virtual time, with the exchange of the field.

Same seed, same run, byte for byte: every event goes into `Network.digest()`. Signatures are real.
"""
