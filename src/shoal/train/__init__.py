"""`shoal train`: reinforcement learning in a swarm that shares rollouts, not weights (SAPO, Swarm sAmpling
Policy Optimization). Each node has its own policy, tasks and verifier.
"""
