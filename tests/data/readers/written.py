"""Files of fields as other programs write them, in every format that is read."""

from __future__ import annotations

import h5py
import numpy as np
import torch
import xarray
import zarr
from PIL import Image
from scipy.io import netcdf_file, savemat


def npz(folder, **arrays):
    np.savez(folder / "f.npz", **arrays)
    return folder / "f.npz"


def npz_compressed_fortran(folder, **arrays):
    kept = {name: np.asfortranarray(values) for name, values in arrays.items()}
    np.savez_compressed(folder / "f.npz", **kept)
    return folder / "f.npz"


def npz_big_endian(folder, **arrays):
    return npz(folder, **{name: values.astype(">f8") for name, values in arrays.items()})


def hdf5(folder, **arrays):
    with h5py.File(folder / "f.h5", "w") as file:
        for name, values in arrays.items():
            file.create_dataset(name, data=values, chunks=True, compression="gzip")
    return folder / "f.h5"


def hdf5_big_endian(folder, **arrays):
    with h5py.File(folder / "f.hdf5", "w") as file:
        for name, values in arrays.items():
            file.create_dataset(f"deep/group/{name}", data=values, dtype=">f8")
    return folder / "f.hdf5"


def mat5(folder, **arrays):
    savemat(folder / "f.mat", arrays, do_compression=True)
    return folder / "f.mat"


def mat73(folder, **arrays):
    """MATLAB stores an array of size (12, 10, 14) as an HDF5 dataset of shape (14, 10, 12)."""
    with h5py.File(folder / "f.mat", "w", userblock_size=512) as file:
        for name, values in arrays.items():
            file[name] = values.T
    with (folder / "f.mat").open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(128))
    return folder / "f.mat"


def torch_dict(folder, **arrays):
    tensors = {name: torch.from_numpy(np.ascontiguousarray(one)) for name, one in arrays.items()}
    torch.save(tensors, folder / "f.pt")
    return folder / "f.pt"


def torch_fortran(folder, **arrays):
    """Tensors whose axes lie in the memory in another order."""
    tensors = {name: torch.from_numpy(np.asfortranarray(one)) for name, one in arrays.items()}
    torch.save({"data": tensors, "epoch": 3}, folder / "f.pth")
    return folder / "f.pth"


def _dataset(arrays, dims):
    return xarray.Dataset({name: (dims, values) for name, values in arrays.items()})


def netcdf4(folder, **arrays):
    _dataset(arrays, ("sample", "y", "x")).to_netcdf(folder / "f.nc", engine="h5netcdf")
    return folder / "f.nc"


def netcdf3(folder, **arrays):
    """NetCDF 3 is big-endian."""
    with netcdf_file(folder / "f.nc", "w") as file:
        sides = next(iter(arrays.values())).shape
        for name, side in zip(("member", "lat", "lon"), sides, strict=True):
            file.createDimension(name, side)
        for name, values in arrays.items():
            file.createVariable(name, "f8", ("member", "lat", "lon"))[:] = values
    return folder / "f.nc"


def xarray_zarr(folder, **arrays):
    _dataset(arrays, ("sample", "y", "x")).to_zarr(folder / "f.zarr")
    return folder / "f.zarr"


def xarray_zarr_2(folder, **arrays):
    _dataset(arrays, ("sample", "y", "x")).to_zarr(folder / "f.zarr", zarr_format=2)
    return folder / "f.zarr"


def transposed_netcdf(folder, **arrays):
    """Named axes may come in any order."""
    moved = {name: values.transpose(2, 0, 1) for name, values in arrays.items()}
    _dataset(moved, ("lon", "sample", "lat")).to_netcdf(folder / "f.nc", engine="h5netcdf")
    return folder / "f.nc"


def plain_zarr(folder, **arrays):
    group = zarr.create_group(folder / "f.zarr")
    for name, values in arrays.items():
        group.create_array(name, data=values, chunks=(5, *values.shape[1:]))
    return folder / "f.zarr"


def npy_folder(folder, **arrays):
    for name, values in arrays.items():
        np.save(folder / f"{name}.npy", np.asfortranarray(values))
    return folder


def images(folder, **arrays):
    """One folder of 32-bit images for each array; the tenth image sorts after the ninth."""
    for name, values in arrays.items():
        (folder / name).mkdir()
        for place, page in enumerate(values):
            Image.fromarray(page.astype(np.float32)).save(folder / name / f"s{place}.tif")
    return folder


def pages(folder, **arrays):
    """One TIFF of many pages for each array."""
    for name, values in arrays.items():
        first, *rest = (Image.fromarray(page.astype(np.float32)) for page in values)
        first.save(folder / f"{name}.tif", save_all=True, append_images=rest)
    return folder


NESTED = {"hdf5_big_endian": "deep/group/", "torch_fortran": "data/"}
"""By writer: where in the file the arrays are."""
WRITERS = [
    npz,
    npz_compressed_fortran,
    npz_big_endian,
    hdf5,
    hdf5_big_endian,
    mat5,
    mat73,
    torch_dict,
    torch_fortran,
    netcdf4,
    netcdf3,
    xarray_zarr,
    xarray_zarr_2,
    transposed_netcdf,
    plain_zarr,
    npy_folder,
    images,
    pages,
]
