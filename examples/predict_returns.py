"""How much of a robot's return can be told from its body alone? A graph network of PyTorch Geometric on the bodies of the reference study.

python examples/predict_returns.py [ENV] [STUDY]

Returns are replaced by their ranks, so that the champions of long runs do not decide alone. What counts is the rank correlation on runs
that training never saw.
"""

import sys

import torch
from scipy.stats import rankdata, spearmanr
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GraphConv, global_add_pool

from codesign_bench.data import RobotBodies

EPOCHS, WIDTH = 60, 64


class ReturnOfBody(nn.Module):
    """[graphs]: what is expected of each body."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([GraphConv(features, WIDTH), GraphConv(WIDTH, WIDTH), GraphConv(WIDTH, WIDTH)])
        self.head = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1))

    def forward(self, batch: Batch) -> Tensor:
        x = torch.cat([batch.x, batch.axis], dim=1)
        for layer in self.layers:
            x = layer(x, batch.edge_index).relu()
        return self.head(global_add_pool(x, batch.batch, size=batch.num_graphs)).squeeze(1)


def ranked(bodies: list[Data]) -> list[Data]:
    """The same bodies, with ranks from 0 to 1 for returns."""
    ranks = rankdata([float(body.y) for body in bodies]) / len(bodies)
    return [body.clone().update({"y": torch.tensor([rank], dtype=torch.float32)}) for body, rank in zip(bodies, ranks, strict=True)]


def main(env: str = "all", study: str = "reference") -> None:
    torch.manual_seed(0)
    dataset = RobotBodies(f".cache/bodies/{study}", env, study)
    print(dataset.sizes().to_string(index=False))
    training, held_out = (ranked(list(part)) for part in dataset.split(share=0.25))
    model = ReturnOfBody(dataset.num_node_features + 3)
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
    for _ in range(EPOCHS):
        for batch in DataLoader(training, batch_size=64, shuffle=True):
            optimiser.zero_grad()
            nn.functional.mse_loss(model(batch), batch.y).backward()
            optimiser.step()
    for name, bodies in (("training runs", training), ("held-out runs", held_out)):
        with torch.no_grad():
            found = torch.cat([model(batch) for batch in DataLoader(bodies, batch_size=256)])
        correlation = spearmanr(found, [float(body.y) for body in bodies]).statistic
        print(f"rank correlation on {len(bodies)} bodies of {name}: {correlation:.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
