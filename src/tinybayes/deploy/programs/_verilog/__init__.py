"""Pieces of the Verilog exporter; `tinybayes.deploy.programs.verilog` puts them together."""
