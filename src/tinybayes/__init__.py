"""tinybayes: discrete probabilistic models learned under a price."""
