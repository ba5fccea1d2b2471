"""Layers of graph networks from PyTorch Geometric, by name. The default, GraphConv, has our kernel (graph_conv.py).

Imported when a network is made of them and not before: importing torch_geometric takes longer than the rest of a run's start.
"""

import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from codesign_bench.errors import ConfigError
from codesign_bench.learning.forest import Forest
from codesign_bench.learning.graph_conv import GraphConv
from codesign_bench.learning.memory import without_compiler_folder

with without_compiler_folder():
    import torch_geometric.nn

Options = Mapping[str, Any]
OFFERED = {"__init__": {"in_channels", "out_channels"}, "forward": {"x", "edge_index"}}
"""What functions of a layer are given, besides its options."""


class _NoTemplates:
    """Put before a layer of PyTorch Geometric."""

    def _set_jittable_templates(self, raise_on_error: bool = False) -> None:
        """Nothing: the original writes a module into the temporary folder for every class and process, and leaves it there.
        What it writes computes the same as what it replaces."""


class _ForestLayer(_NoTemplates):
    """Put before a layer of PyTorch Geometric: relu(layer) on a Forest or on an edge_index."""

    def forward(self, x: Tensor, graph: Forest | Tensor, rows: int | None = None) -> Tensor:
        """[nodes, in] -> [rows, out], the first `rows` nodes (default: all)"""
        edge_index = graph.edge_index if isinstance(graph, Forest) else graph
        out: Tensor = super().forward(x, edge_index)  # type: ignore[misc]
        return out.relu()[:rows]


def make_original(name: str, inputs: int, outputs: int) -> nn.Module:
    """A layer as PyTorch Geometric has it; the random numbers that its constructor draws are given back."""
    with torch.random.fork_rng(devices=[]):
        layer: nn.Module = type(f"_{name}", (_NoTemplates, getattr(torch_geometric.nn, name)), {})(inputs, outputs)
    return layer


def make_layer(name: str, inputs: int, outputs: int, options: Options) -> nn.Module:
    """A layer whose result has `outputs` numbers per node; heads that are concatenated share them."""
    if name == "GraphConv" and not options:
        return GraphConv(inputs, outputs)
    cls = _layer_class(name)
    heads = options.get("heads", 1) if options.get("concat", "concat" in inspect.signature(cls.__init__).parameters) else 1
    if outputs % heads:
        raise ValueError(f"{outputs} numbers per node cannot be shared by {heads} heads")
    layer: nn.Module = cls(inputs, outputs // heads, **options)
    return layer.eval()  # some draw random numbers while they train, which shards on threads of their own cannot share


@cache
def _layer_class(name: str) -> Any:
    base = getattr(torch_geometric.nn, name)
    return type(f"_{name}", (_ForestLayer, base), {"__module__": __name__, "__doc__": base.__doc__})


def __getattr__(name: str) -> Any:
    """Classes made by `_layer_class` are found again by who unpickles them."""
    if name.startswith("_") and hasattr(torch_geometric.nn, name[1:]):
        return _layer_class(name[1:])
    raise AttributeError(name)


def check_layer(name: str, options: Options, sizes: tuple[int, ...], where: str) -> None:
    """Raises ConfigError unless networks of these sizes can be made of such layers."""
    problem = next((found for size in dict.fromkeys(sizes) if (found := _problem(name, options, sizes[0], size))), None)
    if problem:
        given = f" with layer_options {dict(options)}" if options else ""
        raise ConfigError(f"{where}.layer is {name}{given}: {problem}; allowed are {', '.join(fitting_layers())}.")


def fitting_layers() -> list[str]:
    """Names of the layers that need no options."""
    return [name for name in dir(torch_geometric.nn) if _is_layer(name) and not _problem(name, {}, 8, 8)]


def _is_layer(name: str) -> bool:
    cls = getattr(torch_geometric.nn, name, None)
    return inspect.isclass(cls) and issubclass(cls, torch_geometric.nn.MessagePassing)


def _problem(name: str, options: Options, inputs: int, outputs: int) -> str | None:
    """Why a layer does not fit, found out on two small trees."""
    if not _is_layer(name):
        return "torch_geometric.nn has no such layer"
    cls = getattr(torch_geometric.nn, name)
    for function, offered in OFFERED.items():
        needed = _needed(getattr(cls, function)) - set(options)
        if needed != offered:
            return f"its {function} needs ({', '.join(sorted(needed))}) and is given ({', '.join(sorted(offered))})"
    if options.get("dropout"):
        return "with dropout it would not act with the network that learns"
    edges = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
    with torch.random.fork_rng(devices=[]):
        x = torch.randn(5, inputs)
        try:
            layer = make_layer(name, inputs, outputs, options).train()
            together, alone = layer(x, edges), layer(x[:3], edges[:, :4])
        except Exception as error:
            return f"it failed on a small graph ({str(error).splitlines()[0] if str(error) else type(error).__name__})"
    if together.shape != (5, outputs):
        return f"it gives {together.shape[-1]} numbers per node instead of {outputs}"
    if not torch.allclose(together[:3], alone, atol=1e-5):
        return "what it gives for one robot depends on the others in its batch"
    return None


def _needed(function: Any) -> set[str]:
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    return {p.name for p in parameters if p.default is p.empty and p.kind in named}
