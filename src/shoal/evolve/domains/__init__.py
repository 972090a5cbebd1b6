"""The domains that come with Shoal. Others register themselves: see `shoal.evolve.registry`."""
