"""Generalised advantage estimation, vectorised over slots."""

import numpy as np

from codesign_bench.arrays import Array


def advantages(reward: Array, value: Array, next_value: Array, ended: Array, gamma: float, lam: float) -> Array:
    """[time, slots] of each. `next_value` is the value of the state that the step led to, before any restart, and zero
    after a terminal step; `ended` marks steps after which another episode begins, whatever the reason."""
    delta = reward + gamma * next_value - value
    result = np.zeros_like(delta)
    running = np.zeros(delta.shape[1])
    for t in range(len(delta) - 1, -1, -1):
        running = delta[t] + gamma * lam * np.where(ended[t], 0.0, running)
        result[t] = running
    return result
