"""Tables: what they say, and that nothing in them can break Markdown or LaTeX."""

from __future__ import annotations

from pathlib import Path

from codesign_bench.analysis import hyperparameters, tables
from codesign_bench.analysis.collect import collect
from codesign_bench.analysis.table import Bold, Table, number, plus_minus, with_interval
from tests.analysis.study import write_run


def row(table: Table, *start: str) -> list[str]:
    return next(list(line) for line in table.rows if line[: len(start)] == start)


def test_numbers_as_text() -> None:
    nan = float("nan")
    assert [number(v) for v in (1234.5, 12.34, 1.234, nan, float("inf"))] == ["1,234", "12.3", "1.23", "-", "never"]
    assert plus_minus(1234.5, 12.34) == "1,234 ± 12"
    assert plus_minus(5.0, nan) == "5.00"
    assert with_interval(12.0, 1.0, 2.0) == "12.0 [1.0, 2.0]"
    assert with_interval(12.0, nan, 2.0) == "12.0"


def test_escapes() -> None:
    table = Table("t", "A_b & 50 %", ("x", "y|z"), (("a*b", Bold("1 ± 2")), ("\\n$", "<b>\n")), ("note_1",))
    assert "**1 ± 2**" in table.markdown()
    assert "a\\*b" in table.markdown()
    assert "y\\|z" in table.markdown()
    assert "\\<b\\> |" in table.markdown()
    assert r"\textbf{1 $\pm$ 2}" in table.latex()
    assert r"\textbackslash{}n\$ & \textless{}b\textgreater{}" in table.latex()
    assert r"\caption{A\_b \& 50 \%. note\_1}" in table.latex()


def test_rows_that_latex_would_read_as_arguments() -> None:
    text = Table("t", "T", ("[x]", "y"), (("[0]", "1"), ("*a", "2"), ("b", "3"))).latex()
    assert "{}[x] & y" in text
    assert "{}[0] & 1" in text
    assert "{}*a & 2" in text
    assert "\nb & 3" in text


def test_long_tables_go_across_pages() -> None:
    short, long = (Table("t", "T", ("a",), tuple((str(i),) for i in range(rows))).latex() for rows in (40, 41))
    assert r"\begin{table}" in short
    assert "longtable" not in short
    assert r"\begin{longtable}{l}" in long
    assert r"\begin{table}" not in long


def test_markdown_leaves_text_alone() -> None:
    text = Table("t", "$x$ ~~no~~ &lt;b&gt;", ("a",), ()).markdown()
    assert text.startswith("### \\$x\\$ \\~\\~no\\~\\~ \\&lt;b\\&gt;\n")


def test_plain_text_for_a_terminal() -> None:
    table = Table(
        "t", "A_b", ("Method", "Gap_2", "Swimmer"), ((Bold("a\x1b[m"), "1 ± 2", Bold("10")), ("longer", "3", "-")), ("A note_1.",)
    )
    assert table.text().splitlines() == [
        "A_b",
        "Method  Gap_2  Swimmer",
        "a [m *  1 ± 2     10 *",
        "longer      3        -",
        "* the best of its column",
        "A note_1.",
    ]
    assert Table("t", "T", ("a", "b"), ()).text() == "T\na  b"


def test_final_returns_mark_the_best_and_the_unfinished(tmp_path: Path) -> None:
    for seed in range(2):
        write_run(tmp_path, "transform2act", seed=seed, returns=[1.0, 1.0, 1.0, 10.0 + seed])
        write_run(tmp_path, "nge", seed=seed, returns=[1.0, 1.0, 1.0, 3.0])
    write_run(tmp_path, "nge", seed=2, returns=[70.0])
    write_run(tmp_path, "ess", seed=0, returns=[90.0])
    write_run(tmp_path, "rgs", "swimmer", returns=[1.0])
    table = tables.final_returns(collect(tmp_path, "study"))
    assert table.columns == ("Method", "Swimmer", "Gap Crosser")
    cells = {line[0]: line[2] for line in table.rows}
    assert [line[0] for line in table.rows if isinstance(line[2], Bold)] == ["Transform2Act"]
    assert cells["Transform2Act"] == "10.5 ± 0.7 (2)"
    assert cells["NGE"] == "3.00 ± 0.00 (2 of 3)"
    assert cells["ESS"] == "90.0 † (10 k)"
    assert cells["RGS"] == "no runs"
    assert any("does not compare" in note for note in table.notes)


def test_parts_of_the_return_stand_beside_it(tmp_path: Path) -> None:
    for seed in range(2):
        more = {
            "reward_forward": [0.0, 2.0 + seed],
            "reward_alive": [1.0, 40.0],
            "reward_control": [0.0, 0.0],
            "net_displacement": [0, 0.5],
        }
        write_run(tmp_path, seed=seed, returns=[1.0, 42.0 + seed], every=20_000, more=more)
    write_run(tmp_path, "nge", returns=[1.0, 50.0], every=20_000)  # an older run
    collection = collect(tmp_path, "study")
    parts = tables.parts(collection)
    assert parts.columns == ("Environment", "Method", "Seeds", "Final return", "Forward", "Alive", "Distance (m)"), "no control all over"
    assert row(parts, "Gap Crosser", "Transform2Act")[3:] == ["42.5 ± 0.7", "2.50 ± 0.71", "40.0 ± 0.0", "0.50 ± 0.00"]
    assert row(parts, "Gap Crosser", "NGE")[3:] == ["50.0", "-", "-", "0.00"]
    assert "Distance (m)" in tables.summary(collection).columns
    assert {"Forward", "Alive", "Distance (m)"} <= set(tables.summary(collection, "gap").columns)


def test_a_part_that_fewer_seeds_have_says_so(tmp_path: Path) -> None:
    write_run(tmp_path, seed=0, more={"reward_forward": [0.0, 0.0, 0.0, 3.0]})
    write_run(tmp_path, seed=1)
    assert row(tables.parts(collect(tmp_path, "study")), "Gap Crosser")[4] == "3.00 (1 of 2)"


def test_the_critics_explained_variance_is_shown_where_it_was_recorded(tmp_path: Path) -> None:
    write_run(tmp_path, "nge", more={"explained_variance": [float("nan")] * 4})
    assert not tables.learning(collect(tmp_path, "study")).rows
    write_run(tmp_path, "transform2act", more={"explained_variance": [0.0, 0.1, 0.2, 0.75]})
    table = tables.learning(collect(tmp_path, "study"))
    assert table.rows == (("Gap Crosser", "Transform2Act", "1 of 1", "0.75"),)


def test_cost_and_exploration_by_hand(tmp_path: Path) -> None:
    write_run(tmp_path, "transform2act", returns=[1.0, 2.0, 3.0, 4.0])
    collection = collect(tmp_path, "study")
    assert row(tables.cost(collection), "Gap Crosser", "Transform2Act")[3:] == ["40 k", "0.33", "2,000", "400 k", "a processor, 2 cores"]
    assert row(tables.exploration(collection), "Gap Crosser", "Transform2Act")[3:] == ["400.0", "500.0", "100.0", "500.0", "7.00"]


def test_hyperparameters_come_from_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    ours, theirs = hyperparameters.tables(collect(tmp_path, "empty"))
    assert row(ours, "Skeleton transforms") == ["Skeleton transforms", "3, 5, 10", "5"]
    assert row(ours, "Variance of attributes")[2] == "0.01"
    assert row(ours, "Variance of controls")[2] == "1.0"
    assert row(ours, "Discount factor")[2] == "0.995; 0.999 (gap)"
    assert row(ours, "Training epochs")[2] == "1000"
    assert row(ours, "Policy learning rate")[2] == "5e-5"
    assert row(ours, "GNN size (skeleton)")[1:] == ["(32, 32, 32), (64, 64, 64), (128, 128, 128), (256, 256, 256)", "(64, 64, 64)"]
    assert row(theirs, "Elimination rate")[1] == "0.15, 0.2, 0.3, 0.4"
    folder = write_run(tmp_path)
    text = (folder / "config.yaml").read_text()
    (folder / "config.yaml").write_text(text.replace("clip: 0.2", "clip: 0.123"))
    ours, _ = hyperparameters.tables(collect(tmp_path, "study"))
    assert row(ours, "PPO clip")[2] == "0.123"
    assert row(ours, "PPO batch size")[2] == "10000"
    assert "the runs of this study" in ours.notes[0]
    assert "Less than the full protocol" in ours.notes[1]
    (folder / "config.yaml").write_text(text.replace("  batch: 10000\n", ""))
    assert row(hyperparameters.tables(collect(tmp_path, "study"))[0], "Training epochs")[2] == "none"


def test_every_selected_value_of_transform2act_was_searched(tmp_path: Path) -> None:
    """The defaults are the paper's, so each is one of the values it searched."""
    (tmp_path / "empty").mkdir()
    ours, _ = hyperparameters.tables(collect(tmp_path, "empty"))
    for line in ours.rows:
        name, searched, selected = map(str, line)
        assert selected.split(";")[0] in searched, name
