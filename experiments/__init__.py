"""The protocols of the papers: sweeps, their stores, and the pages of results.

Nothing here is installed with the package; run it in a clone, for example ``python -m experiments FILE.toml``.
"""
