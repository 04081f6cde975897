"""Training by gradient: one engine, and what it trains."""
