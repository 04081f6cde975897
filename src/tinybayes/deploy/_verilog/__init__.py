"""Pieces of the Verilog exporter; `tinybayes.deploy.verilog` puts them together."""
