"""Relearning parameters under ties."""
