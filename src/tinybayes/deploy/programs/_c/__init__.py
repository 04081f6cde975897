"""Pieces of the C exporter; `tinybayes.deploy.programs.c` puts them together."""
