"""Learn a circuit over all columns of a table: exact likelihoods, queries with gaps, and samples."""

import numpy as np

from tinybayes import CircuitDensity, model_cost

generator = np.random.default_rng(0)
rain = generator.integers(0, 2, 4000)
wet = np.where(generator.random(4000) < 0.9, rain, generator.integers(0, 2, 4000))
umbrella = np.where(generator.random(4000) < 0.7, rain, 0)
slippery = np.where(generator.random(4000) < 0.8, wet, 0)
table = np.stack([rain, wet, umbrella, slippery], axis=1)
train, test = table[:3000], table[3000:]

for price in (0.1, 100, 200):  # of one edge, in units of log-likelihood
    density = CircuitDensity(edge_price=price).fit(train)
    cost = model_cost(density.circuit_)
    print(f"edge price {price}: {cost.edges} edges, {density.score(test):.4f} nats a row on new rows")

density = CircuitDensity(edge_price=0.1).fit(train)
print("P(rain | slippery, no umbrella) =", density.query("x0=1 | x3=1, x2=0"))
print("log P(wet), the rest unknown =", density.score_samples([[np.nan, 1, np.nan, np.nan]])[0])
print("three samples:", density.sample(3, random_state=0).tolist())
