"""Titles of the families of models. Without the families: reports need no more than their names."""

TITLES = {
    "boosted": "boosted trees",
    "dense": "neural net",
    "conv": "convolutional net",
    "tan": "tree-augmented",
    "naive": "naive Bayes",
    "subset": "tree-augmented, structure learned",
    "tree": "decision tree",
    "forest": "random forest",
    "closed-form": "closed form",
    "tied": "tied parameters",
    "circuit": "circuit",
}
