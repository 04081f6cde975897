"""Titles of the families of models. Without the families: reports need no more than their names."""

TITLES = {
    "dense": "neural net",
    "conv": "convolutional net",
    "tan": "tree-augmented",
    "naive": "naive Bayes",
    "subset": "tree-augmented, structure learned",
    "closed-form": "closed form",
    "tied": "tied parameters",
    "circuit": "circuit",
    "tree": "decision tree",
    "forest": "random forest",
    "boosted": "boosted trees",
}
