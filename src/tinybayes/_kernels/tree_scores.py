"""Scores of rows under an ensemble of decision trees."""

from tinybayes._kernels import jit


@jit
def add_trees(feature, threshold, child, missing, members, first_set, root, output, table, X, scores):
    """Add the values of the leaves that rows of codes fall into, tree by tree, in the numbers of the table.

    A code that is not a state, below zero, is missing. `first_set` has, for each node, the row of its members.
    """
    for i in range(len(X)):
        for t in range(len(root)):
            node = root[t]
            while feature[node] >= 0:
                code = X[i, feature[node]]
                if code < 0:
                    left = missing[node]
                elif threshold[node] >= 0:
                    left = code <= threshold[node]
                else:
                    left = members[first_set[node], code]
                node = child[node] if left else child[node] + 1
            if output[t] >= 0:
                scores[i, output[t]] += table[threshold[node], 0]
            else:
                for c in range(scores.shape[1]):
                    scores[i, c] += table[threshold[node], c]
