"""Values from the literature, for orientation: published.csv, each with its source. The paper itself prints no numbers."""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Published:
    env: str
    method: str
    value: float
    low: float | None
    high: float | None
    steps: int
    source: str


@cache
def values() -> tuple[Published, ...]:
    with open(Path(__file__).with_name("published.csv"), newline="", encoding="utf-8") as file:
        return tuple(
            Published(
                row["env"],
                row["method"],
                float(row["value"]),
                float(row["low"]) if row["low"] else None,
                float(row["high"]) if row["high"] else None,
                int(row["steps"]),
                row["source"],
            )
            for row in csv.DictReader(file)
        )
