"""The domains that come with Shoal. Others register themselves: see `open_domain`."""
