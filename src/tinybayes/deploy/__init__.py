"""Model to files and back: the native format, BIF, XMLBIF, UAI, circuits as text; and to code for devices."""

from tinybayes.deploy.files.formats import (
    read_any,
    read_distribution,
    read_joint,
    read_model,
    read_network,
    write_model,
)
from tinybayes.deploy.files.native import load, save
from tinybayes.deploy.programs.c import to_c

__all__ = [
    "load",
    "read_any",
    "read_distribution",
    "read_joint",
    "read_model",
    "read_network",
    "save",
    "to_c",
    "write_model",
]
