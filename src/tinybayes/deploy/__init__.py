"""Model to files and back: the native format, BIF, XMLBIF, UAI, circuits as text; and to code for devices."""

from tinybayes.deploy.files.formats import load, read_classifier, read_distribution, read_joint, read_network, save
from tinybayes.deploy.imports.scikit_learn import from_sklearn

__all__ = ["from_sklearn", "load", "read_classifier", "read_distribution", "read_joint", "read_network", "save"]
