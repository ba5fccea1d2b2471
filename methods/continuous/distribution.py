"""The design distribution N(mu, diag sigma^2) and its policy gradient from a population of antithetic pairs (Ha, 2019)."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.stats import rankdata

from codesign_bench.arrays import Array
from codesign_bench.errors import ConfigError
from codesign_bench.structured import Natural, NotNegative, PositiveShare, ShareBelowOne
from methods.continuous.parameters import Range


@dataclass(frozen=True)
class DesignConfig:
    """Of the design distribution; all numbers are in the space of w (see parameters.py)."""

    range: Range
    sigma: NotNegative
    sigma_min: NotNegative
    sigma_max: float
    sigma_rate: NotNegative
    sigma_step: ShareBelowOne
    sigma_decay: PositiveShare
    sigma_decay_above: NotNegative
    shaping: Literal["zscore", "ranks"]
    penalty: NotNegative
    learning_rate: NotNegative
    betas: tuple[ShareBelowOne, ShareBelowOne]
    warmup_steps: Natural
    freeze_last_steps: Natural

    def __post_init__(self) -> None:
        for name in ("sigma", "sigma_min"):
            if getattr(self, name) > self.sigma_max:
                raise ConfigError(f"method.design.{name} is {getattr(self, name)}; allowed is at most sigma_max, {self.sigma_max}.")


class DesignDistribution:
    """mu and sigma, and the moments of Adam."""

    def __init__(self, size: int, config: DesignConfig) -> None:
        self.config = config
        self.mu, self.sigma = np.zeros(size), np.full(size, config.sigma)
        self.updates = 0
        self.first, self.second = np.zeros(size), np.zeros(size)

    def members(self, noise: Array) -> Array:
        """[pairs, size] standard normal numbers -> [2 pairs, size]: mu + sigma n, mu - sigma n, pair after pair."""
        return np.stack([self.mu + self.sigma * noise, self.mu - self.sigma * noise], axis=1).reshape(-1, len(self.mu))

    def update(self, noise: Array, returns: Array) -> None:
        """One step from the returns [2 pairs] of the members that `noise` made. What a bound did to them does not matter: the
        gradient is that of the samples before clipping."""
        fitness = self.fitness(returns, self.members(noise))
        self._step_sigma(noise, fitness)
        self._step_mu(mean_gradient(noise, fitness))

    def fitness(self, returns: Array, members: Array) -> Array:
        shaped = z_scores(returns) if self.config.shaping == "zscore" else centred_ranks(returns)
        fitness: Array = shaped - self.config.penalty * (members**2).mean(axis=1)
        return fitness

    def _step_mu(self, gradient: Array) -> None:
        """Adam, upwards."""
        first, second = self.config.betas
        self.updates += 1
        self.first = first * self.first + (1 - first) * gradient
        self.second = second * self.second + (1 - second) * gradient**2
        direction = self.first / (1 - first**self.updates) / (np.sqrt(self.second / (1 - second**self.updates)) + 1e-8)
        self.mu = self.mu + self.config.learning_rate * direction

    def _step_sigma(self, noise: Array, fitness: Array) -> None:
        """Grows where far samples did better than near ones. A sigma that starts below the floor may stay there, so that
        zero means zero."""
        config, before = self.config, self.sigma
        change = np.clip(config.sigma_rate * sigma_gradient(noise, fitness), -config.sigma_step, config.sigma_step)
        sigma = before * (1 + change)
        sigma = np.where(sigma > config.sigma_decay_above, config.sigma_decay * sigma, sigma)
        self.sigma = np.clip(sigma, np.minimum(config.sigma_min, before), config.sigma_max)

    def state_dict(self) -> dict[str, Any]:
        arrays = {name: getattr(self, name).tolist() for name in ("mu", "sigma", "first", "second")}
        return {**arrays, "updates": self.updates}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name in ("mu", "sigma", "first", "second"):
            setattr(self, name, np.asarray(state[name], dtype=np.float64))
        self.updates = int(state["updates"])


def mean_gradient(noise: Array, fitness: Array) -> Array:
    """[size]: sigma times the REINFORCE gradient for mu; any baseline cancels within a pair."""
    plus, minus = fitness[0::2], fitness[1::2]
    gradient: Array = (plus - minus) @ noise / len(fitness)
    return gradient


def sigma_gradient(noise: Array, fitness: Array) -> Array:
    """[size]: sigma times the REINFORCE gradient for sigma, with the mean fitness as its baseline."""
    of_pair = (fitness[0::2] + fitness[1::2]) / 2
    gradient: Array = (of_pair - fitness.mean()) @ (noise**2 - 1) / len(of_pair)
    return gradient


def z_scores(returns: Array) -> Array:
    scores: Array = (returns - returns.mean()) / (returns.std() + 1e-8)
    return scores


def centred_ranks(returns: Array) -> Array:
    """-0.5 for the worst to 0.5 for the best; equal returns share their mean rank."""
    ranks: Array = (rankdata(returns) - 1) / (len(returns) - 1) - 0.5
    return ranks
