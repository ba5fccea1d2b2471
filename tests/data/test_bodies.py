"""The data set of bodies: every champion and every species of a study, with what it earned, read once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from torch_geometric.loader import DataLoader

from codesign_bench.data import RobotBodies, to_data
from codesign_bench.design.stored import StoredDesign
from codesign_bench.errors import ConfigError
from tests.analysis.study import write_run


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Runs in two environments, one of a population with three species."""
    for env in ("gap", "locomotion3d"):
        for seed in (0, 1):
            write_run(tmp_path / "results", env=env, seed=seed)
    run = write_run(tmp_path / "results", "nge", returns=[2.0, 4.0], every=20_000)
    (run / "designs" / "at_000020000.json").write_text((run / "designs" / "final.json").read_text())
    (run / "tables").mkdir()
    text = json.dumps(StoredDesign.load(run / "designs" / "final.json").design.to_dict()).replace('"', '""')
    (run / "tables" / "species.csv").write_text("species,design\n" + "".join(f'{number},"{text}"\n' for number in range(3)))
    (run / "tables" / "genealogy.csv").write_text(
        "generation,species,parent,born,mutation,fitness,bodies,champion\n"
        "0,0,,0,random,1.5,2,1\n0,1,,0,random,nan,2,0\n1,0,,0,random,0.5,2,0\n1,2,0,1,add,3.5,3,1\n"
    )
    return tmp_path / "results"


def made(results: Path, name: str = "all", **given: object) -> RobotBodies:
    return RobotBodies(str(results.parent / "data"), name, "study", str(results), **given)  # type: ignore[arg-type]


def test_every_champion_and_species_with_its_return(results: Path) -> None:
    dataset = made(results, "gap")
    nge = [data for data in dataset if data.method == "nge"]
    # the last evaluation is the best one, too; species 1 has no fitness, and 0 was fitter in its first generation
    assert sorted((data.kind, float(data.y), int(data.steps)) for data in nge) == [
        ("champion", 2.0, 20_000),
        ("champion", 4.0, 40_000),
        ("species", 1.5, 20_000),
        ("species", 3.5, 40_000),
    ]
    assert [(data.run, float(data.y)) for data in dataset if data.method != "nge"] == [
        ("gap/transform2act/seed_0", 4.0),
        ("gap/transform2act/seed_1", 4.0),
    ]
    stored = StoredDesign.load(results / "study/gap/transform2act/seed_0/designs/final.json")
    one = next(data for data in dataset if data.run == "gap/transform2act/seed_0")
    expected = to_data(stored.design, stored.space)
    assert torch.equal(one.x, expected.x)
    assert torch.equal(one.edge_index, expected.edge_index)


def test_environments_share_columns(results: Path) -> None:
    dataset = made(results)
    depths = dataset.num_node_features - 5
    for data in dataset:
        assert torch.equal(data.x[:, :depths].argmax(1), data.depth)
        assert torch.equal(data.x[:, depths:], data.attributes)
    (batch,) = DataLoader(dataset, batch_size=100)
    assert batch.num_graphs == len(dataset) == 8


def test_it_is_read_once(results: Path) -> None:
    before = len(made(results))
    shutil.rmtree(results)
    assert len(made(results)) == before
    with pytest.raises(ConfigError, match="There is no"):
        made(results, force_reload=True)


def test_filters_and_transforms(results: Path) -> None:
    def doubled(data):  # type: ignore[no-untyped-def]
        data.y = 2 * data.y
        return data

    dataset = made(results, pre_filter=lambda data: data.kind == "champion", pre_transform=doubled, transform=doubled)
    assert {data.kind for data in dataset} == {"champion"}
    assert max(float(data.y) for data in dataset) == 16.0


def test_no_run_is_on_both_sides(results: Path) -> None:
    dataset = made(results)
    for seed in range(5):
        sides = [{data.run for data in part} for part in dataset.split(share=0.4, seed=seed)]
        assert not sides[0] & sides[1]
        assert len(sides[0] | sides[1]) == 5
        assert len(sides[1]) == 2
    assert [data.run for data in dataset.split(seed=1)[1]] == [data.run for data in made(results).split(seed=1)[1]]


def test_parts_are_split_as_the_whole(results: Path) -> None:
    training, _ = made(results).split(share=0.4)
    sides = [{data.run for data in part} for part in training.split(share=0.3)]  # type: ignore[attr-defined]
    assert not sides[0] & sides[1]
    assert len(sides[0] | sides[1]) == 3
    sides = [{data.run for data in part} for part in made(results).shuffle().split(share=0.4)]
    assert not sides[0] & sides[1]
    with pytest.raises(ConfigError, match="of 1 runs; allowed are two or more"):
        made(results, "gap", pre_filter=lambda data: data.method == "nge", force_reload=True).split()


def test_evaluations_that_are_no_numbers_teach_nothing(results: Path) -> None:
    write_run(results, seed=2, returns=[1.0, 3.0, float("nan"), float("nan")])
    mine = [data for data in made(results, "gap") if data.run.endswith("transform2act/seed_2")]
    assert [(float(data.y), int(data.steps)) for data in mine] == [(3.0, 20_000)]


def test_one_bad_run_takes_no_other_with_it(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (results / "study/gap/nge/seed_0/tables/species.csv").unlink()
    (results / "study/gap/nge/seed_0/designs/at_foo.json").write_text("{}")
    assert {data.method for data in made(results, "gap")} == {"transform2act"}
    assert "left out: " in capsys.readouterr().err


def test_sizes(results: Path) -> None:
    sizes = made(results).sizes().set_index(["env", "method", "kind"])
    assert sizes.loc[("gap", "nge", "species")].tolist()[:2] == [2, 1]
    assert sizes["graphs"].sum() == 8


def test_an_environment_without_runs(results: Path) -> None:
    with pytest.raises(ConfigError, match="has no runs of 'swimmer'"):
        made(results, "swimmer")
