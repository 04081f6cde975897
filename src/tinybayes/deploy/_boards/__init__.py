"""Emulated boards: how to build a program for them, run it, and read its size."""
