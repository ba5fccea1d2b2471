"""Robots as data for graph networks; torch_geometric is imported with it."""

from codesign_bench.data.bodies import RobotBodies
from codesign_bench.data.graphs import to_data

__all__ = ["RobotBodies", "to_data"]
