import os
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.data.readers import written
from twoscale.data import Dataset, description, import_fields
from twoscale.domain.grid import Grid
from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError
from twoscale.fields.source import gather
from twoscale.problems import Poisson

RNG = np.random.default_rng(0)
X, U = RNG.standard_normal((2, 12, 10, 14))


def _npy(folder, x=X, u=U):
    np.save(folder / "a.npy", x)
    np.save(folder / "u.npy", u)
    return [folder / "a.npy", folder / "u.npy"]


def _with(values, value):
    values = values.copy()
    values[7, 2, 2] = value
    return values


SOLID = np.ones((2, 3, 4, 5, 6))


@pytest.mark.parametrize(
    ("x", "u", "keys", "words"),
    [
        (X, U, {"inputs": "b"}, r"no array 'b' \(input\): it holds a \(12, 10, 14\), u"),
        (X, U, {"outputs": None}, r"that are output: it holds a \(12, 10, 14\), u"),
        (X, U[:11], {}, r"samples must agree, .* 'u' 11 samples of 10x14 \(axes nhw\); .*hwn"),
        (_with(X, np.nan), U, {}, "NaN or infinite values, first in sample 7"),
        (_with(X, 1e39), U, {}, "beyond the range of single precision .*, first in sample 7"),
        (np.ones(12), U, {}, r"got \(12,\): scalars of each sample can be inputs"),
        (X, np.ones(12), {}, r"'u' must have shape \(samples, height, width\), .*"),
        (SOLID, SOLID, {}, "of fields in three dimensions give slices"),
        (X * 1j, U, {}, "real numbers, got dtype complex128"),
        (np.array([{}], dtype=object), U, {}, "damaged or not what its name says"),
        *(
            (np.zeros(s), U, {}, "'a' are without values")
            for s in ((0, 8, 8), (3, 0, 8), (3, 8, 0))
        ),
    ],
)
@pytest.mark.filterwarnings("error")
def test_arrays_that_are_no_pairs(tmp_path, x, u, keys, words):
    np.savez(tmp_path / "f.npz", a=x, u=u)
    with pytest.raises(TwoscaleError, match=words):
        import_fields(tmp_path / "f.npz", tmp_path / "d", **{"inputs": "a", "outputs": "u"} | keys)
    assert not list(tmp_path.glob("d*"))


@pytest.mark.parametrize("name", ["f.npz", "f.h5", "f.mat", "u.npy", "f.csv"])
def test_damaged_and_unknown_files(tmp_path, name):
    files = [*_npy(tmp_path)[:1], tmp_path / name] if name == "u.npy" else [tmp_path / name]
    files[-1].write_bytes(b"not what it says")
    with pytest.raises(TwoscaleError, match=r"damaged or not (what|a readable)|of no known kind"):
        import_fields(files, tmp_path / "d", inputs="a", outputs="u")
    with pytest.raises(TwoscaleError, match="does not exist"):
        import_fields(tmp_path / f"none.{name}", tmp_path / "d")


def test_one_file_of_one_array_or_three(tmp_path):
    files = _npy(tmp_path)
    with pytest.raises(TwoscaleError, match="holds one array"):
        import_fields(files[:1], tmp_path / "d")
    with pytest.raises(TwoscaleError, match="set of 3 files that are input and output"):
        import_fields([*files, files[0]], tmp_path / "d")
    file = written.npz(tmp_path, a=X).rename(tmp_path / "g.npy")
    with pytest.raises(TwoscaleError, match=r"g\.npy holds several arrays"):
        import_fields([files[0], file], tmp_path / "d")


@pytest.mark.parametrize("write", [written.npz, written.hdf5, written.mat5, written.mat73])
def test_two_files_of_several_arrays_are_pieces(tmp_path, write):
    file, npy = write(tmp_path, a=X, u=U), _npy(tmp_path)[0]
    for files in ([file, file], [npy, file], [file, npy]):
        words = "several files must be of one kind|which can be read in two ways: each piece is one"
        with pytest.raises(TwoscaleError, match=words):
            import_fields(files, tmp_path / "d", inputs="a", outputs="u")


SPECIAL = {
    "a pipe, not a file": os.mkfifo,
    "a device, not a file": lambda path: path.symlink_to("/dev/zero"),
    "is empty: give a file or folder of arrays": Path.mkdir,
    "its symbolic links lead in a circle": lambda path: path.symlink_to(path),
}


@pytest.mark.parametrize("suffix", ["npz", "npy", "h5", "mat", "csv"])
@pytest.mark.parametrize(("words", "make"), SPECIAL.items(), ids=SPECIAL)
def test_things_that_are_no_files(tmp_path, suffix, words, make):
    file = tmp_path / f"f.{suffix}"
    make(file)
    for files in ([file], [file, file]):
        with pytest.raises(TwoscaleError, match=words):
            import_fields(files, tmp_path / "d", inputs="a", outputs="u")
    assert list(tmp_path.iterdir()) == [file]


def _channels(samples=12):
    """Three input channels, two output channels on another grid, two parameters."""
    rng = np.random.default_rng(1)
    return {
        "a": rng.standard_normal((samples, 2, 10, 14)),
        "b": rng.standard_normal((samples, 10, 14)),
        "u": rng.standard_normal((samples, 6, 7)),
        "v": rng.standard_normal((samples, 6, 7)),
        "p": rng.standard_normal(samples),
        "q": rng.standard_normal((samples, 1)),
    }


def _import(tmp_path, arrays, **options):
    np.savez(tmp_path / "f.npz", **arrays)
    return import_fields([tmp_path / "f.npz"], tmp_path / "d", **options)


def test_several_keys_are_stacked_as_channels(tmp_path):
    arrays = _channels()
    dataset = _import(tmp_path, arrays, inputs=["a", "b"], outputs=["u", "v"])
    assert dataset.input_space == Space(Grid((10, 14)), 3, names=("a[0]", "a[1]", "b"))
    assert dataset.output_space == Space(Grid((6, 7)), 2, names=("u", "v"))
    inputs = np.concatenate([arrays["a"], arrays["b"][:, None]], axis=1).astype(np.float32)
    outputs = np.stack([arrays["u"], arrays["v"]], axis=1).astype(np.float32)
    assert np.array_equal(dataset.read("input", 0, 12), inputs)
    assert np.array_equal(dataset.read("output", 3, 9), outputs[3:9])
    assert torch.equal(dataset.load("output", [8, 2]), torch.from_numpy(outputs[[2, 8]]))
    assert str(dataset.layout) == "3x10x14 fields to 2x6x7 fields"


def test_parameters_are_beside_fields(tmp_path):
    arrays = _channels()
    dataset = _import(tmp_path, arrays, inputs="b", outputs="u", parameters=["p", "q"])
    assert dataset.input_space == Space(Grid((10, 14)), 1, names=("b", "p", "q"), parameters=2)
    assert dataset.arrays == ("input", "parameters", "output")
    parameters = np.stack([arrays["p"], arrays["q"][:, 0]], axis=1).astype(np.float32)
    assert np.array_equal(dataset.read("parameters", 0, 12), parameters)
    assert torch.equal(dataset.load("parameters", [4, 1]), torch.from_numpy(parameters[[1, 4]]))
    stored = dataset.fields("input", [7, 3])
    (loaded,) = dataset.load_fields("input", [[3, 7]])
    for source in (stored, loaded):
        fields = gather(source)
        assert source.shape == fields.shape == (2, 1, 10, 14)
        assert torch.equal(fields[:, 0], torch.from_numpy(arrays["b"][[3, 7]]).float())
    assert torch.equal(dataset.parameters([[7, 3]])[0], torch.from_numpy(parameters[[3, 7]]))
    assert gather(dataset.fields("output", [3])).shape == (1, 1, 6, 7)
    assert str(dataset.layout) == "10x14 fields and 2 parameters to 6x7 fields"


def test_parameters_alone_have_no_fields(tmp_path):
    arrays = _channels()
    dataset = _import(tmp_path, arrays, outputs="u", parameters=["p", "q"])
    assert dataset.input_space == Space(Grid((1, 1)), 0, names=("p", "q"), parameters=2)
    assert dataset.arrays == ("parameters", "output")
    assert dataset.fields("input", range(12)).shape == (12, 0, 1, 1)
    assert dataset.parameters([range(12)])[0].shape == (12, 2)
    with pytest.raises(TwoscaleError, match="no array 'input': it holds 'parameters', 'output'"):
        dataset.load("input", [0])
    assert dataset.nbytes == 4 * 12 * (2 + 42)
    held = dataset.cache().load_fields("input", [[5], [1, 2]])
    assert [one.shape for one in held] == [(1, 0, 1, 1), (2, 0, 1, 1)]
    assert Dataset(dataset.path).identity == dataset.identity


def test_fields_on_a_line_keep_their_two_axes(tmp_path):
    arrays = {"a": _channels()["b"][:, 0], "u": _channels()["u"][:, 0]}
    dataset = _import(tmp_path, arrays, inputs="a", outputs="u", periodic=(True, True))
    assert dataset.input_space.grid == Grid(
        (1, 14), periodic=(False, True)
    )  # one row has nothing to wrap
    assert dataset.output_space.grid == Grid((1, 7), periodic=(False, True))
    assert np.array_equal(dataset.read("input", 0, 12), arrays["a"].astype(np.float32))
    assert dataset.load("input", range(12)).shape == (12, 1, 1, 14)


def test_npy_files_are_named_by_their_files(tmp_path):
    arrays = _channels()
    files = [tmp_path / f"{name}.npy" for name in "bup"]
    for file in files:
        np.save(file, arrays[file.stem])
    dataset = import_fields(files, tmp_path / "d", inputs="b", outputs="u", parameters="p")
    assert dataset.input_space.names == ("b", "p")
    with pytest.raises(TwoscaleError, match=r"set of 3 files has no array 'c' .* it holds b \("):
        import_fields(files, tmp_path / "e", inputs="c", outputs="u")
    with pytest.raises(TwoscaleError, match="named by their files, which need different names"):
        import_fields([files[0], files[0]], tmp_path / "e", inputs="b", outputs="b")


def test_the_same_arrays_make_the_same_dataset(tmp_path):
    arrays = _channels()
    options = {"inputs": ["a", "b"], "outputs": "u", "parameters": "p"}
    np.savez(tmp_path / "f.npz", **arrays)
    made = [import_fields([tmp_path / "f.npz"], tmp_path / name, **options) for name in "de"]
    assert made[0].identity == made[1].identity
    arrays["p"][3] += 1
    np.savez(tmp_path / "f.npz", **arrays)
    assert import_fields([tmp_path / "f.npz"], tmp_path / "g", **options).identity != (
        made[0].identity
    )
    renamed = import_fields([tmp_path / "f.npz"], tmp_path / "h", **options, periodic=(True, False))
    assert renamed.identity != Dataset(tmp_path / "g").identity


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"inputs": ["a", "u"]}, r"agree in samples and grid: 'a' has .*\(12, 2, 10, 14\), 'u'"),
        ({"inputs": ["b", "b"]}, "an array is one channel only, got 'b' twice"),
        ({"inputs": "b", "parameters": "b"}, r"shape \(samples,\) or \(samples, parameters\), got"),
        ({"inputs": "b", "parameters": "short"}, "input: 12, output: 12, parameters: 11"),
        ({"inputs": "b", "parameters": "nan"}, "the parameters 'nan' contain NaN .* in sample 7"),
        ({"inputs": ["b", "bad"]}, "the input fields 'bad' contain NaN .* in sample 3"),
        (
            {"inputs": "b", "parameters": "c"},
            "parameters 'c' must be real numbers, got .*two channels",
        ),
        ({"inputs": "b", "parameters": "x"}, r"no array 'x' \(parameters\)"),
        ({}, r"that are input: it holds a \(12, 2, 10, 14\), b"),
        ({"inputs": "a", "problem": Poisson()}, "poisson has 1 input .* got 2 on 10x14 and"),
        ({"inputs": "b", "parameters": "p", "problem": Poisson()}, "got 1 on 10x14 and 1 on 6x7"),
        (
            {"inputs": "b", "problem": Poisson(), "periodic": (True, False)},
            "got 1 on 10px14 and 1 on 6px7: leave the problem out",
        ),
        ({"parameters": "p", "outputs": ()}, "that are output"),
        ({"inputs": ["b", "last"]}, r"in two ways: .* 10 channels of 14x3.* \(axes nhw,nhwc\)"),
    ],
)
def test_refusals(tmp_path, options, words):
    arrays = _channels()
    arrays["short"] = arrays["p"][:11]
    arrays["nan"] = np.where(np.arange(12) == 7, np.nan, arrays["p"])
    arrays["bad"] = arrays["b"].copy()
    arrays["bad"][3, 2, 2] = np.inf
    arrays["c"] = arrays["p"] * 1j
    arrays["last"] = np.ones((12, 10, 14, 3))
    with pytest.raises(TwoscaleError, match=words):
        _import(tmp_path, arrays, **({"outputs": "u"} | options))
    assert [path.name for path in tmp_path.iterdir()] == ["f.npz"]


def test_samples_too_large_for_one_chunk_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(description, "_LARGEST_SAMPLE", 1000)
    words = r"one sample takes 1\.12 kB, at most 1 kB can be stored: use fewer channels"
    with pytest.raises(TwoscaleError, match=words):
        _import(tmp_path, _channels(), inputs="a", outputs="u")
