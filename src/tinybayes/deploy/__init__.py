"""Model to files and back: the native format, BIF, XMLBIF, UAI, and circuits as text."""

from tinybayes.deploy.formats import read_any, read_model, read_network, write_model
from tinybayes.deploy.native import load, save

__all__ = ["load", "read_any", "read_model", "read_network", "save", "write_model"]
