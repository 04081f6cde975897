"""Model to files and back: the native format, BIF, XMLBIF, UAI."""

from tinybayes.deploy.formats import read_model, write_model
from tinybayes.deploy.native import load, save

__all__ = ["load", "read_model", "save", "write_model"]
