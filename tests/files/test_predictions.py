"""Predictions from files to a file, compared with predictions in memory."""

import tempfile
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import certree
from certree import predict_files
from certree.files.predictions import predict_columns
from certree.tables import formats
from same_models import make_table

N = 900
FORMS = ["parquet", "arrow", "csv", "csv.gz", "tsv"]


@pytest.fixture(scope="module")
def rows():
    rows = make_table(N, "three", seed=3).drop_columns(["w"])
    return rows.append_column("key", pa.array(np.arange(N)))


@pytest.fixture(scope="module")
def model(rows):
    X = rows.drop_columns(["y", "key"])
    return certree.BoostedTreesClassifier(max_iter=4, random_state=0).fit(
        X, rows["y"].to_numpy(False)
    )


def write(rows, place, form):
    if form == "parquet":
        pq.write_table(rows, place, row_group_size=70)
    elif form == "arrow":
        with pa.OSFile(str(place), "wb") as file, pa.ipc.new_file(file, rows.schema) as to:
            to.write_table(rows, max_chunksize=110)
    else:
        delimiter = "\t" if form == "tsv" else ","
        with pa.output_stream(place, "gzip" if form == "csv.gz" else None) as file:
            pa.csv.write_csv(rows, file, pa.csv.WriteOptions(delimiter=delimiter))


def folder_of(rows, folder, form, ends=(0, 300, 300, 301, N)):
    folder.mkdir()
    for number, (a, b) in enumerate(pairwise(ends)):
        write(rows.slice(a, b - a), folder / f"{number}.{form}", form)
    return folder


def expected(model, rows):
    X = rows.drop_columns(["y", "key"])
    shares = model.predict_proba(X)
    columns = {f"probability_{c}": shares[:, k] for k, c in enumerate(model.classes_)}
    return {"key": rows["key"].to_numpy(), "prediction": model.predict(X), **columns}


@pytest.mark.parametrize("batch_size", [1, 64, 10_000])
@pytest.mark.parametrize("form", FORMS)
def test_predictions_of_files_equal_those_in_memory(form, batch_size, model, rows, tmp_path):
    few = rows.slice(0, 130) if batch_size == 1 else rows
    ends = (0, 60, 60, 61, len(few))
    source = folder_of(few, tmp_path / "rows", form, ends)
    target = tmp_path / "target.parquet"
    assert predict_files(model, source, target, keep=["key"], batch_size=batch_size) == len(few)
    wanted, found = expected(model, few), pq.read_table(target)
    assert found.column_names == [*wanted]
    for name, one in wanted.items():
        values = found[name].to_numpy(zero_copy_only=False)
        assert values.astype(str).tolist() == one.astype(str).tolist() if name == "key" else True
        if name != "key":
            np.testing.assert_array_equal(values, one)


@pytest.mark.parametrize("name", ["predicted.csv", "predicted.csv.gz", "predicted.tsv"])
def test_batches_do_not_change_the_file(name, model, rows, tmp_path):
    source = folder_of(rows, tmp_path / "rows", "parquet")
    contents = []
    for batch_size in (50, 10_000):
        predict_files(model, source, tmp_path / name, batch_size=batch_size)
        contents.append((tmp_path / name).read_bytes())
    assert contents[0] == contents[1]


def test_data_sets_and_lists_are_read(model, rows, tmp_path):
    source = folder_of(rows, tmp_path / "rows", "parquet")
    files = sorted(source.iterdir())
    texts = []
    for given in (source, files, str(source), pa.dataset.dataset(files)):
        predict_files(model, given, tmp_path / "predicted.csv")
        texts.append((tmp_path / "predicted.csv").read_text())
    assert len(set(texts)) == 1
    assert len(texts[0].splitlines()) == N + 1


def test_further_columns_are_written(rows, tmp_path):
    numbers = rows.drop_columns(["y", "key", "colour"])
    source = folder_of(rows, tmp_path / "rows", "parquet")
    y = rows["x0"].to_numpy()
    for model, names in (
        (certree.PACBayesTreeRegressor(random_state=0), ["prediction", "between", "within"]),
        (certree.BoostedTreesRegressor(max_iter=2, standard_errors=True), ["prediction", "std"]),
        (
            certree.CertifiedTreeRegressor(random_state=0, duplicates="genuine"),
            ["prediction", "between", "within", "lower", "upper"],
        ),
        (certree.BoostedTreesRegressor(max_iter=2), ["prediction_0", "prediction_1"]),
    ):
        targets = np.column_stack([y, -y]) if names[0] == "prediction_0" else y
        predict_files(
            model.fit(numbers, targets), source, tmp_path / "predicted.parquet", batch_size=101
        )
        found = pq.read_table(tmp_path / "predicted.parquet")
        assert found.column_names == names
        predicted = np.column_stack([found[one] for one in names if one.startswith("prediction")])
        np.testing.assert_array_equal(
            predicted, np.asarray(model.predict(numbers)).reshape(predicted.shape)
        )


def test_a_model_without_names_takes_columns_by_position(rows, tmp_path):
    numbers = np.column_stack([rows[f"x{j}"] for j in range(4)])
    model = certree.BoostedTreesRegressor(max_iter=2).fit(numbers, numbers[:, 0])
    source = rows.select(["x0", "key", "x1", "x2", "x3"])
    pq.write_table(source, tmp_path / "rows.parquet")
    predict_files(model, tmp_path / "rows.parquet", tmp_path / "predicted.parquet", keep=["key"])
    predicted = pq.read_table(tmp_path / "predicted.parquet")["prediction"].to_numpy()
    np.testing.assert_array_equal(predicted, model.predict(numbers))
    with pytest.raises(
        ValueError,
        match=r"must have the 4 features .*, as the model has no names of features, got 5",
    ):
        predict_files(model, tmp_path / "rows.parquet", tmp_path / "predicted.parquet")


def test_kept_columns_of_parquet_files_keep_their_types(model, rows, tmp_path):
    kept = pa.table({"key": rows["key"], "small": pa.array(np.arange(N), pa.int32())})
    kept = kept.append_column("large", pa.array([2**63 + k for k in range(N)], pa.uint64()))
    source = rows.drop_columns(["key"])
    for name in kept.column_names:
        source = source.append_column(name, kept[name])
    pq.write_table(source, tmp_path / "rows.parquet")
    predict_files(
        model, tmp_path / "rows.parquet", tmp_path / "predicted.parquet", keep=kept.column_names
    )
    assert pq.read_table(tmp_path / "predicted.parquet").select(kept.column_names).equals(kept)


def test_rows_are_predicted_in_batches(model, rows, tmp_path, monkeypatch):
    """No more rows than a batch has are predicted at a time."""
    source = folder_of(rows, tmp_path / "rows", "parquet")
    batch_sizes = []
    predict_proba = type(model).predict_proba
    monkeypatch.setattr(
        type(model),
        "predict_proba",
        lambda self, X: batch_sizes.append(len(X)) or predict_proba(self, X),
    )
    predict_files(model, source, tmp_path / "predicted.csv", batch_size=100)
    assert max(batch_sizes) <= 100
    assert sum(batch_sizes) == N


def test_the_first_block_does_not_decide_the_type_of_a_column(rows, tmp_path, monkeypatch):
    """Later blocks have fractions after integers, and strings after codes that look like numbers."""
    monkeypatch.setattr(formats, "_BLOCK", 64)
    monkeypatch.setattr(formats, "_SMALL_BLOCK", 64)
    (tmp_path / "rows.csv").write_text("x0,colour\n" + "1,7\n" * 50 + "1.5,red\n")
    some = rows.select(["x0", "colour"])
    model = certree.BoostedTreesClassifier(max_iter=2, random_state=0).fit(
        some, rows["y"].to_numpy(False)
    )
    with pytest.warns(UserWarning, match="'colour' .* 1 category that the fit has not seen.*: '7'"):
        predict_files(model, tmp_path / "rows.csv", tmp_path / "predicted.parquet")
    X = pa.table({"x0": [1.0] * 50 + [1.5], "colour": ["7"] * 50 + ["red"]})
    probability = pq.read_table(tmp_path / "predicted.parquet")["probability_one"].to_numpy()
    np.testing.assert_array_equal(probability, model.predict_proba(X)[:, 0])


# -- what is refused, and leaves nothing behind


@pytest.fixture
def nothing_is_left(tmp_path):
    yield
    assert not [*tmp_path.glob("predicted*"), *tmp_path.glob(".certree*")]


def test_a_column_that_a_later_file_lacks_is_named(model, rows, tmp_path, nothing_is_left):
    source = folder_of(rows, tmp_path / "rows", "parquet", tuple(range(0, N, 18)))
    pq.write_table(rows.drop_columns(["x2"]), source / "90.parquet")
    with pytest.raises(
        ValueError, match=r"90\.parquet must have all features of the model, but lacks 'x2'"
    ):
        predict_files(model, source, tmp_path / "predicted.csv")
    pq.write_table(rows.drop_columns(["key"]), source / "90.parquet")
    with pytest.raises(
        ValueError, match=r"keep must name columns of .*90\.parquet, but there is no column 'key'"
    ):
        predict_files(model, source, tmp_path / "predicted.csv", keep=["key"])


def test_other_types_than_in_the_fit_are_named(model, rows, tmp_path, nothing_is_left):
    source = folder_of(rows, tmp_path / "rows", "parquet")
    words = rows.set_column(0, "x0", pa.array(["word"] * N))
    pq.write_table(words, source / "9.parquet")
    with pytest.raises(
        ValueError, match="feature 'x0' must hold numbers as in the fit, got 'word'"
    ):
        predict_files(model, source, tmp_path / "predicted.csv")
    text = "x0,x1,x2,x3,colour\n" + "1,2,3,4,red\n" * 400_000 + "one,2,3,4,red\n" * 5000
    (tmp_path / "rows.csv").write_text(text)
    with pytest.raises(
        ValueError, match=r"'x0' must hold numbers as in the fit, got 'one' in .*rows\.csv"
    ):
        predict_files(model, tmp_path / "rows.csv", tmp_path / "predicted.csv")


def test_a_file_that_changes_while_it_is_read_is_named(
    model, rows, tmp_path, monkeypatch, nothing_is_left
):
    source = folder_of(rows, tmp_path / "rows", "parquet")
    say = type(model).predict_proba

    def changed(self, X):
        write(rows.slice(0, 500), source / "3.parquet", "parquet")
        return say(self, X)

    monkeypatch.setattr(type(model), "predict_proba", changed)
    with pytest.raises(ValueError, match=r"3\.parquet has changed while it was read"):
        predict_files(model, source, tmp_path / "predicted.csv", batch_size=100)


def test_an_interrupted_prediction_leaves_the_old_file(model, rows, tmp_path, monkeypatch):
    source = folder_of(rows, tmp_path / "rows", "csv")
    (tmp_path / "predicted.csv").write_text("old")
    calls = []
    predict_proba = type(model).predict_proba

    def interrupted(self, X):
        calls.append(X)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return predict_proba(self, X)

    monkeypatch.setattr(type(model), "predict_proba", interrupted)
    with pytest.raises(KeyboardInterrupt):
        predict_files(model, source, tmp_path / "predicted.csv", batch_size=100)
    assert (tmp_path / "predicted.csv").read_text() == "old"
    assert not [*tmp_path.glob(".certree*")]


def test_wrong_arguments(model, rows, tmp_path, nothing_is_left):
    source = folder_of(rows, tmp_path / "rows", "parquet")
    target = tmp_path / "predicted.csv"
    for how, message in (
        ({"keep": "key"}, "keep must be"),
        ({"batch_size": 0}, "batch_size must be"),
        ({"threshold": 0.5}, "threshold must be None unless the model is"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            predict_files(model, source, target, **how)
    with pytest.raises(ValueError, match=r"must lie outside the folders .* is in .*rows"):
        predict_files(model, source, source / "deep.csv")
    with pytest.raises(ValueError, match=r"must end in \.csv"):
        predict_files(model, source, tmp_path / "predicted.txt")
    file = next(source.glob("*.parquet"))
    link, content = tmp_path / "link.parquet", file.read_bytes()
    link.symlink_to(file)
    for read, written in (
        (file, file),
        ([link], file),
        (file, link),
        (pyarrow.dataset.dataset(file), file),
    ):
        with pytest.raises(
            ValueError, match=r"target must not be a file that is read, but .* lost"
        ):
            predict_files(model, read, written)
    assert file.read_bytes() == content
    with pytest.raises(FileNotFoundError, match="no such file or folder"):
        predict_files(model, tmp_path / "nowhere", target)
    pq.write_table(rows.slice(0, 0), tmp_path / "none.parquet")
    with pytest.raises(ValueError, match="holds no rows"):
        predict_files(model, tmp_path / "none.parquet", target)
    twice = rows.rename_columns(["prediction" if n == "key" else n for n in rows.column_names])
    pq.write_table(twice, tmp_path / "twice.parquet")
    with pytest.raises(
        ValueError, match="keep must not name a column of the predictions, got 'prediction'"
    ):
        predict_files(model, tmp_path / "twice.parquet", target, keep=["prediction"])


def test_progress_is_shown_for_several_batches(model, rows, tmp_path, monkeypatch, capsys):
    def absent(module, extra, before=certree.interface.progress.import_extra):
        if module.startswith("rich"):
            raise ImportError
        return before(module, extra)

    monkeypatch.setattr(certree.interface.progress, "import_extra", absent)
    source = folder_of(rows, tmp_path / "rows", "csv")
    predict_files(model, source, tmp_path / "predicted.csv", batch_size=1000, verbose=1)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) > 1
    assert all(one.startswith("predicting, %: ") and "rows/s" in one for one in lines)
    assert lines[-1].startswith("predicting, %: 100 of 100")
    assert "left" in lines[0]
    assert "left" not in lines[-1]


@pytest.mark.parametrize("block", [400, 2**24])
def test_blocks_of_text_may_end_anywhere(block, model, rows, tmp_path, monkeypatch):
    write(rows, tmp_path / "rows.csv", "csv")
    monkeypatch.setattr(formats, "_BLOCK", block)
    monkeypatch.setattr(formats, "_SMALL_BLOCK", block)
    predict_files(model, tmp_path / "rows.csv", tmp_path / "predicted.parquet")
    found = pq.read_table(tmp_path / "predicted.parquet")["probability_one"].to_numpy()
    np.testing.assert_array_equal(found, expected(model, rows)["probability_one"])


def test_standard_input_is_read(model, rows, tmp_path, monkeypatch):
    with tempfile.TemporaryFile() as file:
        pa.csv.write_csv(rows, file)
        file.seek(0)
        monkeypatch.setattr("sys.stdin", type("Stream", (), {"buffer": file}))
        assert predict_files(model, "-", tmp_path / "predicted.parquet") == N
    found = pq.read_table(tmp_path / "predicted.parquet")["probability_one"].to_numpy()
    np.testing.assert_array_equal(found, expected(model, rows)["probability_one"])


def test_a_threshold_is_compared_with_probabilities_and_not_with_standard_errors():
    X = np.random.default_rng(0).normal(size=(300, 2))
    y = X[:, 0] + np.random.default_rng(1).normal(size=300) > 0
    model = certree.BoostedTreesClassifier(standard_errors=True, max_iter=20, random_state=0).fit(
        X, y
    )
    columns = predict_columns(model, X, 0.6)
    np.testing.assert_array_equal(columns["prediction"], model.predict_proba(X)[:, 1] >= 0.6)
    assert "std_True" in columns


def test_a_threshold_may_be_one_of_the_first_class(tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 2))
    is_default = X[:, 0] + np.random.default_rng(1).normal(size=300) > 0
    names = np.where(is_default, "default", "paid")
    model = certree.BoostedTreesClassifier(max_iter=5, random_state=0).fit(X, names)
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1]}), tmp_path / "rows.parquet")
    target = tmp_path / "predicted.parquet"
    predict_files(model, tmp_path / "rows.parquet", target, threshold=0.3, pos_label="default")
    found = pq.read_table(target)["prediction"].to_numpy()
    is_found = model.predict_proba(X)[:, 0] >= 0.3
    np.testing.assert_array_equal(found, np.where(is_found, "default", "paid"))
    for how, message in (
        (
            {"threshold": 0.3, "pos_label": "late"},
            "one of the classes 'default' and 'paid', got 'l",
        ),
        ({"pos_label": "default"}, "pos_label needs a threshold of its probability"),
    ):
        with pytest.raises(ValueError, match=message):
            predict_files(model, tmp_path / "rows.parquet", target, **how)


def test_classifiers_of_several_targets_are_refused():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = certree.TreeForestClassifier(n_estimators=3, random_state=0).fit(X, X > 0)
    with pytest.raises(ValueError, match="a file of predictions needs a model with one target"):
        predict_columns(model, X)


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.large_string())], ids=str
)
def test_unseen_categories_of_every_text_type_are_named(rows, model, kind, tmp_path):
    """pandas writes large strings to Parquet files."""
    new = rows.slice(0, 60).drop_columns(["colour"])
    new = new.append_column("colour", pa.array(["mauve", None] * 30).cast(kind))
    pq.write_table(new, tmp_path / "new.parquet")
    expected = "'colour' .* 1 category that the fit has not seen, in 30 rows: 'mauve'"
    with pytest.warns(UserWarning, match=expected):
        predict_files(model, tmp_path / "new.parquet", tmp_path / "predicted.csv")
