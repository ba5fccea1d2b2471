"""Values from the literature, for orientation: published.csv, each with its source. The paper itself prints no numbers."""

from functools import cache
from pathlib import Path

import pandas as pd


@cache
def values() -> pd.DataFrame:
    """env, method, value, low and high (missing where the source gives none), steps, source."""
    return pd.read_csv(Path(__file__).with_name("published.csv"))
