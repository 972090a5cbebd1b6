"""`shoal train`: reinforcement learning in a swarm that shares rollouts, not weights.

The system of SAPO (Swarm sAmpling Policy Optimization). Each node has its own policy, its own tasks and its
own verifier, and trains on I groups of its own and J of others.
"""
