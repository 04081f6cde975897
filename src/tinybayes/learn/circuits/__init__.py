"""Learning arithmetic circuits and networks of tree CPDs."""
