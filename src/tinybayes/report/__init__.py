"""Showing models to people."""
