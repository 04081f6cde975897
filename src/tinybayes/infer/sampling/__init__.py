"""Approximate inference: samplers that estimate all marginals within a budget. `methods` has the one interface."""
