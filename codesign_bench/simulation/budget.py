"""The ledger: the core's own count of environment steps. Methods get steps only from samplers that charge it."""

from codesign_bench.errors import BudgetError, ConfigError


class Ledger:
    """Counts the steps charged to a run and refuses to go past its budget. Evaluation steps are metered apart."""

    def __init__(self, budget: int) -> None:
        if budget < 1:
            raise ConfigError(f"The budget is {budget} steps; allowed are whole numbers from 1 up.")
        self.budget = budget
        self.charged = 0
        self.evaluation = 0

    @property
    def left(self) -> int:
        return self.budget - self.charged

    def charge(self, steps: int) -> None:
        """Called before the steps are taken; a request that does not fit is refused whole and nothing is simulated for it."""
        if steps < 1:
            raise BudgetError(f"{steps} steps were requested; allowed are whole numbers from 1 up.")
        if steps > self.left:
            raise BudgetError(f"{steps} steps were requested but the budget of {self.budget} has {self.left} left; nothing was simulated.")
        self.charged += steps

    def meter_evaluation(self, steps: int) -> None:
        self.evaluation += steps

    def state_dict(self) -> dict[str, int]:
        return {"charged": self.charged, "evaluation": self.evaluation}

    def load_state_dict(self, state: dict[str, int]) -> None:
        if not 0 <= state["charged"] <= self.budget:
            raise BudgetError(f"A checkpoint has {state['charged']} charged steps; the budget is {self.budget}.")
        self.charged, self.evaluation = state["charged"], state["evaluation"]
