"""``measureflow cluster`` reads what people have, says what it did, and refuses clearly."""

import json
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from measureflow import FlowMixture, cli
from measureflow.data import load_faithful, load_penguins
from measureflow.report.page import page
from measureflow.report.pictures import described, draw
from measureflow.report.summary import Summary, refits
from measureflow.tables.read import choose_columns, read_table
from measureflow.tables.text import parse_csv

runner = CliRunner()
GEYSER = load_faithful()


def run(*arguments):
    """The command without refits, which take their time, unless they are asked for."""
    refits = () if "--stability" in arguments else ("--stability", "0")
    return runner.invoke(cli.main, ["cluster", *map(str, arguments), *refits])


@pytest.fixture
def geyser(tmp_path):
    GEYSER.to_csv(tmp_path / "geyser.csv", index=False)
    return tmp_path / "geyser.csv"


def test_files_hold_what_the_estimator_found(geyser, tmp_path):
    result = run(geyser, "--out", tmp_path / "report", "--json")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    mixture = FlowMixture().fit(GEYSER.to_numpy())
    labels = pd.read_csv(tmp_path / "report" / "labels.csv")
    assert labels.columns.tolist() == ["eruptions", "waiting", "cluster", "probability"]
    assert np.array_equal(labels["cluster"], mixture.labels_)
    np.testing.assert_allclose(labels["probability"], mixture.predict_proba(GEYSER.to_numpy()).max(1), atol=1e-6)
    centers = pd.read_csv(tmp_path / "report" / "centres.csv")
    np.testing.assert_allclose(centers[["eruptions", "waiting"]], mixture.cluster_centers_)
    assert centers["rows"].tolist() == np.bincount(mixture.labels_).tolist()
    assert said["n_clusters"] == mixture.n_clusters_
    assert said["clusters"][0]["centre"]["waiting"] == pytest.approx(mixture.cluster_centers_[0, 1])
    assert [name.rsplit("/", 1)[-1] for name in said["files"]] == [
        "labels.csv",
        "centres.csv",
        "report.png",
        "report.html",
    ]
    assert (tmp_path / "report" / "report.png").read_bytes().startswith(b"\x89PNG")


def test_words_name_the_columns_the_answer_and_the_files(geyser, tmp_path):
    result = run(geyser, "--out", tmp_path / "report", "--n-clusters", 2)
    assert result.exit_code == 0
    assert "Columns used: eruptions, waiting" in result.output
    assert "2 clusters in 272 rows" in result.output
    assert "K = 2 was asked for" in result.output
    assert "Take care" not in result.output
    assert "high waiting" in result.output
    assert "low eruptions" in result.output
    assert "report.html" in result.output


def test_skipped_columns_and_dropped_rows_are_told(tmp_path):
    table = load_penguins().drop(columns="year")
    table.insert(0, "row", range(len(table)))
    table["constant"] = 3.5
    table.to_csv(tmp_path / "penguins.tsv", index=False, sep="\t")
    refused = run(tmp_path / "penguins.tsv", "--out", tmp_path, "--missing", "error")
    assert refused.exit_code == 2
    assert "'bill_length_mm' of row 4" in refused.output
    assert "--missing drop" in refused.output
    result = run(tmp_path / "penguins.tsv", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    for words in ("skipped species: text", "skipped row: an identifier", "skipped constant: constant"):
        assert words in result.output
    assert "344 rows, 2 of them with gaps left out" in result.output
    labels = pd.read_csv(tmp_path / "labels.csv")
    assert (labels.loc[labels["bill_length_mm"].isna(), "cluster"] == -1).all()


def test_a_warning_names_the_column_and_ends_once(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"weight": rng.normal(size=90), "grade": rng.integers(0, 3, 90)})
    table.to_csv(tmp_path / "grades.csv", index=False)
    result = run(tmp_path / "grades.csv", "--out", tmp_path / "report")
    assert "'grade'" in result.output
    assert "leave it out?\n" in result.output
    assert "?." not in result.output


@pytest.mark.parametrize("out", ["taken", "taken/deeper"])
def test_a_file_where_the_folder_should_be_is_told_before_the_work(geyser, tmp_path, out):
    (tmp_path / "taken").write_text("something else")
    result = run(geyser, "--out", tmp_path / out)
    assert result.exit_code == 2
    assert "--out must name a folder, and" in result.output
    assert "taken is a file" in result.output.replace("\n", "")


def test_a_folder_instead_of_a_file(tmp_path):
    result = run(tmp_path)
    assert result.exit_code == 2
    assert "is a folder; name a file in it" in result.output


def test_a_wrong_path_is_told_before_torch_is_loaded(tmp_path):
    code = (
        "import sys; from measureflow import cli\n"
        f"try: cli.main(['cluster', {str(tmp_path / 'none.csv')!r}])\n"
        "except SystemExit as end: assert end.code == 2, end.code\n"
        "assert not {'torch', 'sklearn', 'matplotlib'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "there is no file" in done.stderr


def test_stability_and_assumption_are_told(geyser, tmp_path):
    result = run(geyser, "--out", tmp_path / "report", "--stability", 2, "--assume", "gaussian")
    assert result.exit_code == 0, result.output
    assert "If the clusters are Gaussian, K = " in result.output
    assert "Fitted again to 2 parts of the rows, K = " in result.output
    assert ", came back " in result.output
    assert "comes back" in (tmp_path / "report" / "report.html").read_text()


def test_stability_is_measured_where_it_takes_seconds(tmp_path):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(c, 0.2, (15, 2)) for c in (-2, 2)])
    pd.DataFrame(X, columns=["a", "b"]).to_csv(tmp_path / "two.csv", index=False)
    result = runner.invoke(cli.main, ["cluster", str(tmp_path / "two.csv"), "--out", str(tmp_path), "--json"])
    stable = FlowMixture(n_stability=10, random_state=0).fit(X).stability_
    said = json.loads(result.stdout)["stability"]
    assert said["n_clusters"] == {str(K): share for K, share in stable.n_clusters.items()}
    assert said["clusters"] == stable.clusters.tolist()
    assert refits(2000, None) == refits(300, 4) == refits(5, None) == 0


def test_the_shares_over_the_bars_do_not_collide():
    table = choose_columns(GEYSER)
    mixture = FlowMixture(n_clusters=5, assume="gaussian").fit(GEYSER)
    mixture.n_clusters_posterior_ = {K: 0.005 if K != 5 else 0.96 for K in range(1, 10)}
    figure = draw(Summary.of(table, mixture))
    figure.draw_without_rendering()
    axes = next(axes for axes in figure.axes if axes.get_xlabel() == "number of clusters")
    words = [words for words in axes.texts if words.get_text().endswith("%")]
    assert [one.get_text() for one in words] == ["96%"]
    mixture.n_clusters_posterior_ = dict.fromkeys(range(1, 10), 1 / 9)
    figure = draw(Summary.of(table, mixture))
    figure.draw_without_rendering()
    axes = next(axes for axes in figure.axes if axes.get_xlabel() == "number of clusters")
    boxes = [words.get_window_extent() for words in axes.texts if words.get_text().endswith("%")]
    assert len(boxes) == 9
    assert all(left.x1 <= right.x0 for left, right in pairwise(boxes))


def test_shares_are_of_the_rows():
    table = choose_columns(GEYSER)
    summary = Summary.of(table, FlowMixture(n_clusters=2).fit(GEYSER))
    assert summary.shares.sum() == pytest.approx(1)
    assert f"{summary.sizes[0]} rows ({summary.sizes[0] / 272:.0%})" in summary.lines()[0]


def test_outliers_are_told_and_labelled():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(c, 0.2, (60, 2)) for c in (-2, 2)])
    table = choose_columns(pd.DataFrame(X, columns=["a", "b"]))
    mixture = FlowMixture(assume="gaussian").fit(X)
    mixture.outliers_ = np.arange(120) < 3
    summary = Summary.of(table, mixture)
    assert summary.certainty().endswith("3 rows lie far from the rest")
    assert summary.to_dict()["n_outliers"] == 3
    assert summary.labelled()["outlier"].sum() == 3


def test_columns_are_obeyed(geyser, tmp_path):
    said = json.loads(run(geyser, "--columns", "waiting", "--out", tmp_path, "--json").stdout)
    assert said["columns"] == ["waiting"]
    assert said["skipped"] == {"eruptions": "not asked for"}


def test_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    GEYSER.to_parquet(tmp_path / "geyser.parquet")
    table = read_table(tmp_path / "geyser.parquet")
    assert np.array_equal(table.values, GEYSER.to_numpy())
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 but not really")
    with pytest.raises(ValueError, match="cannot be read as Parquet"):
        read_table(tmp_path / "broken.parquet")


@pytest.mark.parametrize(
    ("content", "options", "word"),
    [
        (None, [], "there is no file"),
        (b"", [], "empty"),
        (b"\xff\xfe\x00", [], "neither a table of text"),
        (b"a,b\n", [], "no rows"),
        (b"a,b\n1,2\n3,4,5,6\n", [], "cannot be read"),
        (b"a\nx\ny\n", [], "no column holds numbers"),
        (b"a,b\n1,2\n2,1\n", ["--columns", "c"], "no column 'c'"),
        (b"a,b\n1,x\n2,y\n", ["--columns", "b"], "text"),
        (b"a,b\n1,2\n2,1\n", ["--columns", "a,a"], "once"),
        (b"a,b\n1,2\n2,1\n", ["--n-clusters", "5"], "2 distinct rows"),
        (b"a,b\n1,2\n2,1\n", ["--missing", "guess"], "missing must be"),
        (b"a,b\n1,2\n2,1\n", ["--snr-db", "nan"], "snr_db"),
        (b"a,b\n1e200,2\n2,1\n3,3\n", [], "too large"),
    ],
)
def test_what_cannot_be_used_is_said_with_exit_code_2(tmp_path, content, options, word):
    if content is not None:
        (tmp_path / "table.csv").write_bytes(content)
    result = run(tmp_path / "table.csv", "--out", tmp_path / "report", *options)
    assert result.exit_code == 2
    assert word in result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "report").exists()


@pytest.mark.parametrize("text", ["1,2\n3,4\n", "1;2\n3;4\n", "1\t2\n3\t4\n", "1|2\n3|4\n", "1,0;2,0\n3,0;4,0\n"])
@pytest.mark.parametrize("names", [True, False])
def test_separators_decimal_commas_and_missing_names(text, names):
    separator = next(s for s in ";\t|," if s in text)
    frame = parse_csv(f"a{separator}b\n" * names + text)
    assert frame.columns.tolist() == (["a", "b"] if names else ["x0", "x1"])
    assert frame.to_numpy().tolist() == [[1, 2], [3, 4]]


def test_names_that_are_taken_get_an_underscore():
    table = choose_columns(pd.DataFrame({"cluster": [1.0, 2.0, 5.0, 6.0]}))
    labelled = Summary.of(table, FlowMixture().fit(table.values)).labelled()
    assert labelled.columns.tolist() == ["cluster", "cluster_", "probability"]


def test_the_page_is_whole_and_names_are_escaped():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(c, 0.2, (40, 3)) for c in (-2, 2)])
    table = choose_columns(pd.DataFrame(X, columns=["<script>", "b&b", "c"]))
    mixture = FlowMixture().fit(X)
    mixture.diagnosis_ = ["odd <i>data</i>"]
    summary = Summary.of(table, mixture)
    html = page(summary, "<title>")
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "Odd &lt;i&gt;data&lt;/i&gt;." in html
    assert "http" not in html  # nothing is fetched
    assert len(draw(summary, "three columns").axes) == 4
    assert summary.traits(0)[0].startswith(("high", "low"))


def test_rows_far_from_the_rest_do_not_hide_what_tells_the_others_apart():
    rng = np.random.default_rng(0)
    near = np.concatenate([rng.normal([c, 0.0], 0.2, (40, 2)) for c in (-2, 2)])
    table = choose_columns(pd.DataFrame([*near, [5000.0, 0.0]], columns=["a", "b"]))
    mixture = FlowMixture(2).fit(near)
    labels, far = np.append(mixture.labels_, 0), np.arange(81) == 80
    hidden, told, all_far = (
        Summary(table, mixture, labels, np.ones(81), 1 - labels, outliers, [])
        for outliers in (np.zeros_like(far), far, np.ones_like(far))
    )
    assert not any(hidden.traits(k) for k in range(2))
    assert sorted(told.traits(k)[0].split(" (")[0] for k in range(2)) == ["high a", "low a"]
    assert "1 row lies far from the rest" in told.certainty()
    np.testing.assert_array_equal(all_far.differences, hidden.differences)


def test_a_single_row_and_many_clusters_can_be_drawn():
    one = choose_columns(pd.DataFrame({"a": [1.0], "b": [2.0]}), ["a", "b"])
    assert "1 cluster in 1 row of 2 columns" in page(Summary.of(one, FlowMixture().fit(one.values)), "one")
    many = choose_columns(pd.DataFrame({"a": np.repeat(np.arange(12.0), 4)}))
    summary = Summary.of(many, FlowMixture(12).fit(many.values))
    assert described(summary)[-1] == (None, "and 4 smaller clusters with 16 rows together")
    draw(summary, "many")
