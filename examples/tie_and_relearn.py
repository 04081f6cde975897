"""Replace all parameters of a classifier by eight levels, then relearn the levels with the ties kept."""

from sklearn.datasets import load_breast_cancer

import tinybayes as tb

data = tb.read_dataset(load_breast_cancer(as_frame=True).frame, target="target")
train, test = data.rows(slice(0, None, 2)), data.rows(slice(1, None, 2))
net = tb.learn_classifier(train, structure="naive")


def show(name: str, model: tb.BayesNet) -> None:
    """One line: likelihood and error on new rows, and the price."""
    nats, error = tb.log_likelihood(model, test).mean(), tb.evaluate(model, test).error
    print(f"{name:<10} {nats:8.3f} nats a row  {100 * error:.2f} % error  {tb.model_cost(model)}")


show("learned", net)
tied = tb.tie(net, 8, data=test)
show("tied", tied.model)
print(f"{'':<10} Theorem 1 allows a loss of {tied.table_bound:.1f} nats; the loss is {tied.before - tied.after:.3f}")
complete = train.rows((train.X >= 0).all(axis=1))
again = tb.relearn(tied.model, complete)
show("relearned", again.model)
