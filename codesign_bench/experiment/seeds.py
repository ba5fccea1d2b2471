"""Random streams by name, derived from the run's seed: adding one never changes another."""

import hashlib

import numpy as np


class Streams:
    """Named children of one seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def sequence(self, name: str, *numbers: int) -> np.random.SeedSequence:
        """The seed of the stream with this name (and numbers, such as a group or an evaluation); always the same one."""
        digest = hashlib.sha256(name.encode()).digest()
        words = [int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4)]
        return np.random.SeedSequence(self.seed, spawn_key=(*words, *numbers))

    def generator(self, name: str, *numbers: int) -> np.random.Generator:
        return np.random.default_rng(self.sequence(name, *numbers))

    def integer(self, name: str, *numbers: int) -> int:
        """A seed for libraries that take one number, such as torch."""
        return int(self.sequence(name, *numbers).generate_state(2, np.uint32).view(np.uint64)[0] >> 1)
