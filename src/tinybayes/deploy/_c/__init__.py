"""Pieces of the C exporter; `tinybayes.deploy.c` puts them together."""
