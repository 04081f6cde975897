"""Many trainings, one budget: a search over families of models, with a store that can be resumed."""
