"""Run folders as they are meant to be used: what is committed comes back, bit by bit."""

import os

import numpy as np
import pytest

import tfbnn
from tests.support.run_folders import created_run
from tfbnn.storage.run import segments
from tfbnn.storage.run.folder import RunFolder

STATE = {
    "z": np.array([[1.5, -0.0, np.nan]], np.float32),
    "step/log": np.array(0.25),
    "none": np.empty((0, 4)),
    "accepted": np.array([True, False]),
    "moved": np.array(True),
    "key": np.array([[3, -4]], np.int32),
    "count": np.array(2**40),
    "bytes": np.frombuffer(b"\x00\xff", np.uint8),
}


def make_run(path, num_groups=1, description=None):
    return created_run(path, description or {}, {"x": np.arange(6.0).reshape(2, 3)}, num_groups)


def draws(first, count, num_chains=2):
    values = np.arange(first, first + count)[:, None, None] + 0.5 * np.arange(num_chains)[:, None]
    return (values + np.zeros(3)).astype(np.float32)


def commit(writer, count=2, **counters):
    """Appends the next draws and commits them."""
    new = draws(sum(writer.checkpoint.lengths) if writer.checkpoint else 0, count)
    writer.append(new, {"lp": new[..., 0].astype(float), "moves": new > 1})
    writer.commit(STATE, counters)


def same(found, expected):
    return (found.dtype, found.shape, found.tobytes()) == (
        expected.dtype,
        expected.shape,
        expected.tobytes(),
    )


@pytest.fixture
def folder(tmp_path):
    return make_run(tmp_path / "run")


# The description.


def test_description_and_arrays_come_back(tmp_path):
    description = {"seed": 2**40, "spec": {"layer_sizes": [2, 1]}, "note": "Größe", "step": 0.1}
    created = created_run(tmp_path / "run", description, STATE, 3)
    assert all(created.arrays[name] is STATE[name] for name in STATE)
    found = RunFolder.open(tmp_path / "run")
    assert (created.run_id, created.description) == (found.run_id, found.description)
    assert found.description == description and found.num_groups == 3
    assert found.arrays.keys() == STATE.keys()
    assert all(same(found.arrays[name], STATE[name]) for name in STATE)


def test_a_folder_that_holds_a_run_is_refused(folder):
    before = folder.run_id
    with pytest.raises(tfbnn.RunFolderError, match="holds a run already. Resume it"):
        make_run(folder.path)
    assert RunFolder.open(folder.path).run_id == before


def test_a_folder_that_holds_something_else_is_refused_and_left_as_it_is(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(tfbnn.RunFolderError, match="empty or new, found .*thesis.tex"):
        make_run(tmp_path)
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_an_empty_folder_is_accepted(tmp_path):
    assert make_run(tmp_path).path == os.path.realpath(tmp_path)


@pytest.mark.parametrize("num_groups", [0, -1, 1.5, "2"])
def test_a_bad_number_of_groups_is_refused(tmp_path, num_groups):
    with pytest.raises(ValueError, match="num_groups must be 1"):
        make_run(tmp_path / "run", num_groups)


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(tfbnn.RunFolderError, match="not a run folder: expected run.h5"):
        RunFolder.open(tmp_path)
    with pytest.raises(FileNotFoundError, match="There is no run folder .*nowhere"):
        RunFolder.open(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(tfbnn.RunFolderError, match="not a run folder"):
        RunFolder.open(tmp_path / "file")


def test_the_description_is_replaced_and_the_rest_stays(folder):
    with folder.writer(0) as writer:
        commit(writer)
    folder.replace_description({"num_results": 20})
    found = RunFolder.open(folder.path)
    assert found.description == folder.description == {"num_results": 20}
    assert found.run_id == folder.run_id and same(found.arrays["x"], folder.arrays["x"])
    assert len(found.read(0).draws) == 2


def test_the_description_stays_while_a_group_is_written(tmp_path):
    folder = make_run(tmp_path / "run", num_groups=2, description={"num_results": 10})
    with folder.writer(1), pytest.raises(tfbnn.RunLockedError, match=f"process {os.getpid()} on"):
        folder.replace_description({"num_results": 20})
    assert folder.description == RunFolder.open(folder.path).description == {"num_results": 10}
    folder.replace_description({"num_results": 20})


@pytest.mark.parametrize(
    "description, error",
    [
        ({"a": float("nan")}, ValueError),
        ({"a": {1, 2}}, TypeError),
        ({"a": [[[[[[[[[[0]]]]]]]]]]}, ValueError),
    ],
)
def test_what_could_not_be_read_is_not_written(folder, description, error):
    with pytest.raises(error):
        folder.replace_description(description)
    assert RunFolder.open(folder.path).description == {}


# Chain groups.


def test_draws_statistics_and_state_come_back(folder):
    with folder.writer(0) as writer:
        assert writer.checkpoint is None
        for count in (2, 1, 3):
            commit(writer, count, done=count)
    found = folder.read(0)
    assert same(found.draws, draws(0, 6))
    assert same(found.statistics["lp"], draws(0, 6)[..., 0].astype(float))
    assert same(found.statistics["moves"], draws(0, 6) > 1)
    assert found.counters == {"done": 3}
    with folder.writer(0) as writer:
        checkpoint = writer.checkpoint
    assert checkpoint.counters == {"done": 3} and checkpoint.num_draws == 6
    assert checkpoint.arrays.keys() == STATE.keys()
    assert all(same(checkpoint.arrays[name], STATE[name]) for name in STATE)


def test_nothing_is_read_before_the_first_commit(folder):
    found = folder.read(0)
    assert found.draws.shape == (0, 0, 0) and found.statistics == {} and found.counters is None
    assert sorted(os.listdir(folder.path)) == ["lease", "run.h5"]
    with folder.writer(0) as writer:
        writer.append(draws(0, 1), {})
        assert len(folder.read(0).draws) == 0
        writer.commit({}, {"phase": "warmup"})
        assert len(folder.read(0).draws) == 1


def test_a_commit_without_draws_keeps_the_state_alone(folder):
    with folder.writer(0) as writer:
        writer.append(draws(0, 0), {})
        writer.commit(STATE, {"phase": "warmup"})
        assert folder.read(0).counters == {"phase": "warmup"}
        assert len(folder.read(0).draws) == 0
    assert sorted(os.listdir(os.path.join(folder.path, "lane-000"))) == ["checkpoint-b.h5", "lease"]


def test_draws_that_were_not_committed_are_gone(folder):
    with folder.writer(0) as writer:
        commit(writer)
        writer.append(draws(2, 5), {"lp": np.zeros((5, 2)), "moves": np.ones((5, 2, 3), bool)})
        assert writer.waiting_bytes == 5 * 2 * (3 * 4 + 8 + 3)
    assert len(folder.read(0).draws) == 2


def test_a_writer_goes_on_where_the_last_one_stopped(folder):
    for _ in range(4):
        with folder.writer(0) as writer:
            commit(writer, 3)
    assert same(folder.read(0).draws, draws(0, 12))


def test_groups_are_apart(tmp_path):
    folder = make_run(tmp_path / "run", num_groups=2)
    with folder.writer(0) as first, folder.writer(1) as second:
        commit(first, 2)
        commit(second, 3)
    assert [len(folder.read(group).draws) for group in range(2)] == [2, 3]


@pytest.mark.parametrize("group", [-1, 1, "0", None])
def test_a_group_that_is_not_there_is_refused(folder, group):
    with pytest.raises(ValueError, match="group must be one of 0 .. 0"):
        folder.read(group)
    with pytest.raises(ValueError, match="group must be one of 0 .. 0"), folder.writer(group):
        pass


@pytest.mark.parametrize(
    "arrays, counters, error",
    [
        ({"z": np.zeros(2, np.float16)}, {}, TypeError),
        ({"z": np.zeros(2, ">f8")}, {}, TypeError),
        ({"z": np.array(["text"])}, {}, TypeError),
        ({"z": np.array([None])}, {}, TypeError),
        ({}, {"acceptance": float("nan")}, ValueError),
        ({f"z{i}": np.zeros(1) for i in range(1000)}, {}, ValueError),
    ],
)
def test_a_state_that_cannot_be_kept_is_refused_and_may_be_mended(folder, arrays, counters, error):
    with folder.writer(0) as writer:
        commit(writer)
        writer.append(draws(2, 1), {"lp": np.zeros((1, 2)), "moves": np.ones((1, 2, 3), bool)})
        with pytest.raises(error):
            writer.commit(arrays, counters)
        assert len(folder.read(0).draws) == 2
        writer.commit({}, {})
    assert same(folder.read(0).draws, draws(0, 3))


def test_appended_arrays_may_be_changed_afterwards(folder):
    new = draws(0, 2)
    with folder.writer(0) as writer:
        writer.append(new, {})
        new[:] = -1
        writer.commit({}, {})
    assert same(folder.read(0).draws, draws(0, 2))


# A folder that is moved while it is written.


@pytest.mark.parametrize("moves", ["between commits", "within one"])
def test_a_folder_that_is_moved_under_its_writer(folder, tmp_path, monkeypatch, moves):
    def move(*args, **kwargs):
        os.rename(folder.path, tmp_path / "elsewhere")
        return segments_write(*args, **kwargs)

    segments_write = segments.write
    with folder.writer(0) as writer:
        writer.commit({}, {"number": 1})
        writer.append(np.zeros((1, 1, 3)), {})
        if moves == "within one":
            monkeypatch.setattr(segments, "write", move)
        else:
            os.rename(folder.path, tmp_path / "elsewhere")
        with pytest.raises(tfbnn.RunFolderError) as caught:
            writer.commit({}, {"number": 2})
        monkeypatch.undo()
    message = str(caught.value)
    assert message.startswith(f"{folder.path!r} was moved or removed while the run was writing")
    assert "lease" not in message and message.endswith("tfbnn resume FOLDER.")
    assert not os.path.exists(folder.path)
    moved = RunFolder.open(tmp_path / "elsewhere")
    assert moved.read(0).counters == {"number": 1}
    with moved.writer(0) as writer:
        writer.commit({}, {"number": 2})
    assert moved.read(0).counters == {"number": 2}


# Removed, and found from inside.


def test_a_run_is_removed_with_all_that_belongs_to_it(tmp_path):
    folder = make_run(tmp_path / "run", num_groups=2)
    with folder.writer(1) as writer:
        commit(writer)
        with pytest.raises(tfbnn.RunLockedError, match="at work"):
            RunFolder.remove(tmp_path / "run")
    (tmp_path / "run" / "stop-1").write_text("")
    (tmp_path / "run" / "preparation").mkdir()
    RunFolder.remove(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_what_does_not_belong_to_a_run_is_not_removed_with_it(tmp_path):
    make_run(tmp_path / "run")
    (tmp_path / "run" / "diary.txt").write_text("mine")
    with pytest.raises(OSError, match="not empty"):
        RunFolder.remove(tmp_path / "run")
    assert os.listdir(tmp_path / "run") == ["diary.txt"]


def test_the_run_around_a_path(tmp_path, folder):
    (tmp_path / "link").symlink_to("run")
    for inside in ("run", "run/new.h5", "run/lane-000/new.h5", "link/new.h5"):
        assert RunFolder.around(tmp_path / inside) == folder.path
    assert RunFolder.around(tmp_path / "new.h5") is None
