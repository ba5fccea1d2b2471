from __future__ import annotations

from tests.experiment.conftest import toy

__all__ = ["toy"]
