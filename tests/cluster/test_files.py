"""One model of files that workers read: the bytes of the one trained in this process."""

from __future__ import annotations

import functools
import os
import signal
import threading

import numpy as np
import pytest
from sklearn.base import clone

import rankgrove as rg
from rankgrove.cluster.parts import Parts, share_out
from rankgrove.data.binning import Binner
from rankgrove.data.counting import count_columns, merged_bins
from rankgrove.growth.grower import frontier_of
from tests.cluster.processes import scheduler_and_worker
from tests.command import run_here


def made_up(n_queries=40, seed=0, sizes=(2, 25)):
    """Return judged data with missing values, few-valued, constant and heavy-tailed features."""
    rng = np.random.default_rng(seed)
    size = rng.integers(*sizes, n_queries)
    n = int(size.sum())
    X = rng.normal(size=(n, 7)).astype(np.float32)
    X[:, 1] = rng.integers(0, 4, n)
    X[:, 2] = 3.0
    X[:, 3] = np.exp(3 * X[:, 3])
    X[rng.random(n) < 0.3, 4] = np.nan
    X[rng.random(n) < 0.8, 5] = 0.0
    signal = X[:, 0] + X[:, 1] + np.nan_to_num(X[:, 4]) + rng.normal(size=n)
    y = np.digitize(signal, [0.5, 2.0, 3.5]).astype(float)
    y[: size[0]] = np.arange(size[0]) % 2  # the highest labels are not in every part
    return rg.QueryDataset(X, y, np.repeat([f"q{i}" for i in range(n_queries)], size))


DATA = made_up()
VALID = made_up(15, seed=5)
READ = {"absent": "missing"}


def write(folder, data, cuts):
    """Write the queries between the cuts into a file each."""
    files = []
    for i, (start, end) in enumerate(zip([0, *cuts], [*cuts, data.n_queries], strict=True)):
        files.append(folder / f"part{i}.txt")
        rg.write_letor(data.select(np.arange(start, end)), files[-1])
    return files


def model_bytes(model, folder):
    model.save(folder / "model.rg")
    return (folder / "model.rg").read_bytes()


PARTS = {"one": [], "two": [1], "three, unequal": [1, 30], "seven": [2, 5, 9, 17, 22, 38]}
SETTINGS = {
    "newton": {},
    "mse, all pairs": {"split": "mse", "truncation": None, "normalise": False, "max_depth": 3},
    "sampling": {"query_fraction": 0.6, "row_fraction": 0.7, "feature_fraction": 0.5},
    "rows of all queries": {"row_fraction": 0.31, "split": "mse"},
    "symmetric": {"growth": "symmetric", "n_leaves": 8, "feature_fraction": 0.5},
    "constraints": {
        "monotone": {1: 1, 5: -1},
        "interactions": [[1, 2, 5], [4, 5, 6, 7]],
        "feature_fraction": 0.8,
    },
    "err, shares": {"measure": "err", "min_leaf": 0.02, "max_bins": 16, "random_state": 3},
}
SETTINGS["symmetric constraints"] = SETTINGS["symmetric"] | SETTINGS["constraints"]


CASES = [("newton", parts) for parts in PARTS] + [("sampling", parts) for parts in PARTS]
CASES += [("mse, all pairs", "three, unequal"), ("rows of all queries", "three, unequal")]
CASES += [("symmetric", "two"), ("symmetric", "three, unequal")]
CASES += [("constraints", "three, unequal"), ("symmetric constraints", "two")]
CASES += [("err, shares", "two")]  # one of which has not the highest grade


@pytest.mark.parametrize(("name", "parts"), CASES)
def test_same_bytes_as_in_one_process(client, tmp_path, parts, name):
    files = write(tmp_path, DATA, PARTS[parts])
    parameters = {"n_trees": 6, "n_leaves": 7, "min_leaf": 5, **SETTINGS[name]}
    here = rg.LambdaMART(**parameters).fit(rg.read_letor(files, **READ))
    there = rg.LambdaMART(**parameters).fit_files(files, cluster=client, **READ)
    assert there.ensemble_.n_leaves > 12
    assert model_bytes(there, tmp_path) == model_bytes(here, tmp_path)


def test_lambdas_that_differ_by_round_go_on_after_trees_without_a_split(client, tmp_path):
    files = write(tmp_path, DATA, PARTS["two"])
    for smoothing, n_trees in ((0.0, 1), (1.0, 3)):
        ranker = rg.LambdaMART(n_trees=3, min_leaf=DATA.n_rows, smoothing=smoothing)
        here = clone(ranker).fit(rg.read_letor(files, **READ))
        there = clone(ranker).fit_files(files, cluster=client, **READ)
        assert there.ensemble_.n_trees == n_trees
        assert model_bytes(there, tmp_path) == model_bytes(here, tmp_path)


def test_many_lots_that_begin_alike(client, tmp_path, monkeypatch):
    """As where very many rows are drawn from: the lowest are found among those of the same bits."""
    monkeypatch.setattr("rankgrove.cluster.rows.LOT_BITS", 2)
    files = write(tmp_path, DATA, [7, 25])
    parameters = {"n_trees": 3, "n_leaves": 5, "query_fraction": 0.55, "row_fraction": 0.6}
    here = rg.LambdaMART(**parameters).fit(rg.read_letor(files, **READ))
    there = rg.LambdaMART(**parameters).fit_files(files, cluster=client, **READ)
    assert model_bytes(there, tmp_path) == model_bytes(here, tmp_path)


@pytest.mark.parametrize("growth", ["leafwise", "symmetric"])
def test_two_planes_and_a_small_pool_of_histograms(client, tmp_path, monkeypatch, growth):
    """As of a million rows, or of very many features."""
    monkeypatch.setattr("rankgrove.growth.quantise.MOST_ROWS_OF_ONE_PLANE", 1)
    few = functools.partial(frontier_of, histogram_bytes=0)
    monkeypatch.setattr("rankgrove.cluster.rows.frontier_of", few)
    files = write(tmp_path, DATA, [7, 25])
    parameters = {"n_trees": 3, "n_leaves": 16, "min_leaf": 5, "growth": growth}
    here = rg.LambdaMART(**parameters).fit(rg.read_letor(files, **READ))
    there = rg.LambdaMART(**parameters).fit_files(files, cluster=client, **READ)
    assert model_bytes(there, tmp_path) == model_bytes(here, tmp_path)


def test_validation_and_early_stopping(client, tmp_path):
    files = write(tmp_path, DATA, [7, 25])
    parameters = {"n_trees": 60, "n_leaves": 6, "learning_rate": 0.5, "early_stopping": 4}
    seen = []
    there = rg.LambdaMART(**parameters).fit_files(
        files,
        cluster=client,
        valid=VALID,
        valid_measures=["ndcg@5", "map"],
        callbacks=lambda progress: seen.append(progress.round) and None,
        **READ,
    )
    train = rg.read_letor(files, **READ)
    here = rg.LambdaMART(**parameters).fit(train, valid=VALID, valid_measures=["ndcg@5", "map"])
    assert here.best_round_ < 56
    assert seen == list(range(1, here.best_round_ + 5))
    assert model_bytes(there, tmp_path) == model_bytes(here, tmp_path)


def test_validation_from_files_and_exact_steps_on_it(client, tmp_path):
    files = write(tmp_path, DATA, [12])
    (tmp_path / "valid").mkdir()
    valid = write(tmp_path / "valid", VALID, [4])
    parameters = {"n_trees": 4, "n_leaves": 5, "step": "optimal", "step_on": "valid"}
    there = rg.LambdaMART(**parameters).fit_files(
        files, cluster=client, valid={"held out": valid}, **READ
    )
    here = rg.LambdaMART(**parameters).fit(
        rg.read_letor(files, **READ), valid={"held out": rg.read_letor(valid, **READ)}
    )
    assert model_bytes(there, tmp_path) == model_bytes(here, tmp_path)


def test_parquet_with_weights_and_names(client, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.asarray(DATA.X), columns=[f"feature {i}" for i in range(7)])
    frame["grade"], frame["query"] = DATA.y, DATA.qid
    frame["importance"] = 1.0 + np.arange(len(frame)) % 3
    columns = {"label": "grade", "qid": "query", "weight": "importance"}
    parts = [frame[DATA.query_of_row < 15], frame[DATA.query_of_row >= 15]]
    for i, part in enumerate(parts):
        part.to_parquet(tmp_path / f"{i}.parquet", index=False)
    files = [tmp_path / "0.parquet", tmp_path / "1.parquet"]
    there = rg.LambdaMART(n_trees=4).fit_files(files, cluster=client, **columns)
    here = rg.LambdaMART(n_trees=4).fit(rg.QueryDataset.from_frame(frame, **columns))
    assert there.feature_names_[0] == "feature 0"
    assert model_bytes(there, tmp_path) == model_bytes(here, tmp_path)


def test_features_that_only_some_files_mention_and_sparse_parts(client, tmp_path):
    """What one file alone mentions is 0 in the others; a part may have no order to learn."""
    rows = {
        "a.txt": ["1 qid:1 1:5", "0 qid:1 1:2", "2 qid:2 1:3 2:1", "0 qid:2 2:4"],
        "b.txt": ["1 qid:3 4:5 1:1", "0 qid:3 4:-1", "1 qid:4 3:3", "2 qid:4 1:4", "0 qid:4 3:1"],
        "c.txt": ["1 qid:5 1:2", "1 qid:5 1:3"],
    }
    for name, lines in rows.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    files = [tmp_path / name for name in rows]
    parameters = {"n_trees": 5, "n_leaves": 4, "min_leaf": 1}
    there = rg.LambdaMART(**parameters).fit_files(files, cluster=client)
    here = rg.LambdaMART(**parameters).fit(rg.read_letor(files))
    assert there.n_features_in_ == 4
    assert model_bytes(there, tmp_path) == model_bytes(here, tmp_path)


@pytest.mark.slow
def test_workers_killed_while_training(client, tmp_path, monkeypatch):
    """A worker is killed after the third round, another within a later one."""
    mended = []
    mend = Parts._mend
    monkeypatch.setattr(Parts, "_mend", lambda parts: mended.append(1) or mend(parts))
    files = write(tmp_path, DATA, [10, 20, 30])
    parameters = {"n_trees": 12, "n_leaves": 8, "query_fraction": 0.8, "min_leaf": 3}

    def kill_one():
        pids = client.run(os.getpid)
        os.kill(pids[min(pids)], signal.SIGKILL)

    def at_times(progress):
        if progress.round == 3:
            kill_one()
        if progress.round == 7:
            threading.Timer(0.02, kill_one).start()

    there = rg.LambdaMART(**parameters).fit_files(files, cluster=client, callbacks=at_times, **READ)
    here = rg.LambdaMART(**parameters).fit(rg.read_letor(files, **READ))
    assert mended
    assert model_bytes(there, tmp_path) == model_bytes(here, tmp_path)


@pytest.mark.slow
def test_all_workers_killed_at_once(client, tmp_path):
    """There is none for a while: those that the cluster starts anew are waited for."""
    files = write(tmp_path, DATA, [10, 20, 30])

    def kill_all(progress):
        if progress.round == 2:
            for pid in client.run(os.getpid).values():
                os.kill(pid, signal.SIGKILL)

    there = rg.LambdaMART(n_trees=4).fit_files(files, cluster=client, callbacks=kill_all, **READ)
    here = rg.LambdaMART(n_trees=4).fit(rg.read_letor(files, **READ))
    assert model_bytes(there, tmp_path) == model_bytes(here, tmp_path)


@pytest.mark.slow
def test_a_worker_killed_before_training(client, tmp_path, monkeypatch):
    """It is lost while the values of features are counted, with what it has read."""
    files = write(tmp_path, DATA, [20])
    bins = Parts.bins

    def kill_first(parts, *arguments):
        monkeypatch.setattr(Parts, "bins", bins)
        pids = client.run(os.getpid)
        os.kill(pids[max(pids)], signal.SIGKILL)
        return parts.bins(*arguments)

    monkeypatch.setattr(Parts, "bins", kill_first)
    there = rg.LambdaMART(n_trees=2).fit_files(files, cluster=client, **READ)
    here = rg.LambdaMART(n_trees=2).fit(rg.read_letor(files, **READ))
    assert model_bytes(there, tmp_path) == model_bytes(here, tmp_path)


@pytest.mark.slow
def test_scheduler_killed_while_training_and_gone_on(tmp_path, monkeypatch):
    """The error says what to do; with a new scheduler the checkpoint leads to the same bits."""
    pytest.importorskip("distributed")
    monkeypatch.setattr("rankgrove.cluster.client.CONNECT_SECONDS", 5.0)
    files = write(tmp_path, DATA, [20])
    parameters = {"n_trees": 8, "n_leaves": 6, "query_fraction": 0.7, "checkpoint_every": 2}
    seen = []

    def train(address, *callbacks):
        ranker = rg.LambdaMART(**parameters, checkpoint=tmp_path / "state")
        return ranker.fit_files(files, cluster=address, callbacks=callbacks, **READ)

    with scheduler_and_worker(tmp_path) as (address, scheduler, worker):

        def kill(progress):
            seen.append(progress.round)
            if progress.round == 4:
                scheduler.kill()  # the workers alone would do for the rest of the training
                worker.kill()

        with pytest.raises(rg.ClusterError, match=r"scheduler at .* is gone .* Restart it"):
            train(address, kill)
    assert seen[-1] < 8
    with scheduler_and_worker(tmp_path) as (address, *_):
        there = train(address, lambda progress: seen.append(progress.round))
    here = rg.LambdaMART(**parameters).fit(rg.read_letor(files, **READ))
    assert seen[-1] == 8
    assert len(seen) < 12  # the first rounds were not made again
    assert model_bytes(there, tmp_path) == model_bytes(here, tmp_path)


def test_a_checkpoint_goes_on_with_other_parts(client, tmp_path):
    files = write(tmp_path, DATA, [10, 20, 30])
    (tmp_path / "other").mkdir()
    others = write(tmp_path / "other", DATA, [25])
    parameters = {"n_leaves": 8, "checkpoint": tmp_path / "state", "query_fraction": 0.7}

    def stop(progress):
        return progress.round == 4

    first = rg.LambdaMART(n_trees=9, **parameters)
    first.fit_files(files, cluster=client, callbacks=stop, valid=VALID, **READ)
    there = rg.LambdaMART(n_trees=9, **parameters)
    there.fit_files(others, cluster=client, valid=VALID, **READ)
    here = rg.LambdaMART(n_trees=9, n_leaves=8, query_fraction=0.7)
    here.fit(rg.read_letor(files, **READ), valid=VALID)
    assert len(first.history_["valid"]["ndcg@10"]) == 4
    assert model_bytes(there, tmp_path) == model_bytes(here, tmp_path)
    changed = write(tmp_path / "other", made_up(seed=1), [25])
    with pytest.raises(rg.DataError, match="training data"):
        rg.LambdaMART(n_trees=9, **parameters).fit_files(
            changed, cluster=client, valid=VALID, **READ
        )


def test_a_query_in_two_files_is_refused(client, tmp_path):
    files = write(tmp_path, DATA, [10, 20, 30])
    whole = files[3].read_text()
    files[3].write_text(whole + "1 qid:q12 1:1 2:1\n")
    with pytest.raises(rg.DataError, match=r"'q12' is in .*part1\.txt and in .*part3\.txt: all"):
        rg.LambdaMART(n_trees=2).fit_files(files, cluster=client, **READ)


def test_mistakes_are_named(client, tmp_path):
    files = write(tmp_path, DATA, [10])
    model = rg.LambdaMART(n_trees=2)
    with pytest.raises(rg.ParseError, match=r"none\.txt"):
        model.fit_files([files[0], tmp_path / "none.txt"], cluster=client)
    with pytest.raises(rg.ParameterError, match="given twice"):
        model.fit_files([files[0], files[0]], cluster=client)
    with pytest.raises(rg.ParameterError, match="either LETOR files"):
        model.fit_files([files[0], "x.parquet"], cluster=client)
    with pytest.raises(rg.ParameterError, match="no parameter 'label'; LETOR files are read by"):
        model.fit_files(files, cluster=client, label="y")
    with pytest.raises(rg.ParameterError, match="a list of at least one"):
        model.fit_files([], cluster=client)
    with pytest.raises(rg.ParameterError, match="cannot start from a submodel"):
        rg.LambdaMART(submodel="base_score").fit_files(files, cluster=client)
    with pytest.raises(rg.ParameterError, match="step_on='valid'"):
        rg.LambdaMART(step="optimal").fit_files(files, cluster=client)
    files[1].write_text("1 qid:1 1:1\n1 qid:x 1:1\n")
    files[0].write_text("1 qid:2 1:2\n1 qid:2 1:1\n")
    with pytest.raises(rg.DataError, match="No query has documents of different relevance"):
        model.fit_files(files, cluster=client)
    files[1].write_text("1 qid:1 1:1\nnonsense\n")
    with pytest.raises(rg.ParseError, match=r"part1\.txt:2: "):
        model.fit_files(files, cluster=client)


def test_on_the_command_line(client, tmp_path):
    files = write(tmp_path, DATA, [10])
    words = ["--set", "n_trees=3", "--valid", files[0], "--quiet", "--out"]
    address = client.scheduler.address
    run_here("train", *files, *words, "there.rg", "--cluster", address, cwd=tmp_path)
    run_here("train", *files, *words, "here.rg", cwd=tmp_path)
    assert (tmp_path / "there.rg").read_bytes() == (tmp_path / "here.rg").read_bytes()
    for more, message in [
        (["--ranker", "mart"], "--cluster trains a lambdamart, not a mart"),
        (["--weight", "w"], "--weight w names columns"),
        (["--submodel", "here.rg"], "cannot start from a submodel"),
    ]:
        _, complaint = run_here(
            "train", *files, "--cluster", address, *more, "--out", "x.rg", cwd=tmp_path, status=2
        )
        assert message in complaint
    _, complaint = run_here(
        "train", *files, "--cluster", "here", "--out", "x.rg", cwd=tmp_path, status=2
    )
    assert "'local', an address such as tcp://host:8786" in complaint


@pytest.mark.parametrize("max_bins", [2, 5, 255])
def test_bins_of_parts_are_those_of_the_whole(max_bins):
    import scipy.sparse

    rng = np.random.default_rng(2)
    X = made_up(60, seed=3).X
    X = np.hstack([X, np.where(rng.random((len(X), 20)) < 0.5, 0.0, rng.normal(size=(len(X), 20)))])
    X = X.astype(np.float32)
    X[3, 8], X[4, 8], X[5, 9] = np.inf, -np.inf, -0.0
    whole = Binner.fit(X, max_bins=max_bins)
    cuts = [slice(0, 5), slice(5, 200), slice(200, None)]
    for kind in (np.asarray, lambda part: scipy.sparse.csr_matrix(np.nan_to_num(part))):
        expected = whole if kind is np.asarray else Binner.fit(kind(X), max_bins=max_bins)
        counted = [count_columns(kind(X[cut]), 0, X.shape[1]) for cut in cuts]
        found = Binner.of(X.shape[1], merged_bins(0, counted, max_bins))
        assert np.array_equal(found.columns, expected.columns)
        for mine, theirs in zip(found.thresholds, expected.thresholds, strict=True):
            assert np.array_equal(mine, theirs)


def test_files_are_shared_out_by_size(tmp_path):
    files = [tmp_path / str(i) for i in range(5)]
    for file, size in zip(files, [10, 70, 30, 20, 10], strict=True):
        file.write_bytes(b"x" * size)
    assert share_out(files, 2) == [[1], [0, 2, 3, 4]]
    assert share_out(files, 9) == [[1], [2], [3], [0], [4]]


# -- positions ------------------------------------------------------------------------------------


def clicked_data():
    """Return impressions with clicks, positions and contexts that few parts have all of."""
    rng = np.random.default_rng(3)
    sessions = 60
    place = np.tile(np.arange(1, 7), sessions)
    X = rng.normal(size=(place.size, 4)).astype(np.float32)
    clicks = rng.random(place.size) < 1 / (1 + np.exp(-X[:, 0])) / place
    device = np.repeat(np.where(np.arange(sessions) % 7 == 2, "phone", "desktop"), 6)
    page = np.repeat(np.where(np.arange(sessions) % 3 == 1, "home", "list"), 6)
    qid = np.repeat(np.arange(sessions), 6)
    contexts = [device, page]
    data = rg.QueryDataset(X, clicks.astype(float), qid, position=place, position_context=contexts)
    return data, {
        "label": clicks.astype(int),
        "qid": qid,
        "place": place,
        "device": device,
        "page": page,
    }


@pytest.mark.parametrize("parts", ["two", "three, unequal"])
@pytest.mark.parametrize("method", ["additive", "ratios", "ips", "affine"])
def test_position_bias_has_the_same_bits(client, tmp_path, method, parts):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    data, columns = clicked_data()
    files = []
    cuts = [6 * cut for cut in PARTS[parts]]
    for i, (start, end) in enumerate(zip([0, *cuts], [*cuts, data.n_rows], strict=True)):
        part = {name: values[start:end] for name, values in columns.items()}
        part |= {f"f{j + 1}": data.X[start:end, j] for j in range(4)}
        files.append(tmp_path / f"part{i}.parquet")
        parquet.write_table(pyarrow.table(part), files[-1])
    given = {"ips": 1.0 / np.arange(1, 7), "affine": 0.5 / np.ones((2, 6))}
    ranker = rg.LambdaMART(
        n_trees=4, n_leaves=5, min_leaf=3, position_bias=method, propensities=given.get(method),
        query_fraction=0.8, checkpoint=tmp_path / "state", checkpoint_every=1,
    )  # fmt: skip
    reading = {"position": "place", "position_context": ["device", "page"]}
    spread = clone(ranker).fit_files(files, cluster=client, **reading, callbacks=third_round)
    spread = clone(ranker).fit_files(files, cluster=client, **reading)
    here = clone(ranker).set_params(checkpoint=None).fit(data)
    np.testing.assert_array_equal(spread.predict(data), here.predict(data))
    for values, other in spread.position_bias_.values.items():
        np.testing.assert_array_equal(other, here.position_bias_.values[values])
    np.testing.assert_array_equal(spread.position_bias_.shown, here.position_bias_.shown)


def third_round(progress):
    return progress.round == 3


def test_position_bias_that_a_cluster_cannot_learn(client, tmp_path):
    files = write(tmp_path, DATA, [10])
    with pytest.raises(rg.ParameterError, match="cannot estimate propensities"):
        rg.LambdaMART(position_bias="ips").fit_files(files, cluster=client)
    with pytest.raises(rg.DataError, match="needs files with positions"):
        rg.LambdaMART(position_bias="additive").fit_files(files, cluster=client)
    with pytest.raises(rg.ParameterError, match="bins on disk have no positions"):
        rg.LambdaMART(position_bias="additive").fit_files(files)
