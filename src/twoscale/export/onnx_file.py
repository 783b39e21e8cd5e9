"""ONNX files: written by torch, checked with onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram

from twoscale._version import __version__
from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError, missing_extra
from twoscale.export.graph import PREDICTION, Predict, first_line, input_names, quiet_libraries
from twoscale.files import to_json

TITLE = "ONNX"
_BATCH = "batch"
_LARGEST = 2**31  # bytes of one protobuf message


def require() -> None:
    """Raise if a package that writes ONNX files is missing."""
    for package in ("onnx", "onnxscript"):
        if find_spec(package) is None:
            raise missing_extra(package, "export")


def content(program: ExportedProgram, space: Space, metadata: Mapping[str, Any]) -> bytes:
    """Return the file of a traced graph on inputs of a space; metadata are JSON texts by name."""
    with quiet_libraries():
        try:
            made = torch.onnx.export(
                program,
                dynamo=True,
                verbose=False,
                input_names=input_names(space),
                output_names=[PREDICTION],
            )
        except Exception as error:
            raise TwoscaleError(
                f"this surrogate has no ONNX graph ({first_line(error)}): a part of your own may "
                "use an operation that ONNX lacks; a .pt2 file may work"
            ) from error
        assert made is not None
        model = made.model_proto
    _clean(model)
    model.producer_name, model.producer_version = "twoscale", __version__
    for name, value in metadata.items():
        model.metadata_props.add(key=name, value=to_json(value))
    if model.ByteSize() >= _LARGEST:
        raise TwoscaleError("this surrogate is too large for one ONNX file: export a .pt2 file")
    return model.SerializeToString()


def _clean(model: Any) -> None:
    """Remove what torch notes of its own work, such as paths of sources; name the batch's axis."""
    graph = model.graph
    del graph.value_info[:]
    for one in (model, graph, *graph.node, *graph.initializer, *graph.input, *graph.output):
        del one.metadata_props[:]
        one.doc_string = ""
    for value in (*graph.input, *graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = _BATCH


def prediction(file: bytes) -> tuple[Predict, str] | None:
    """Return how onnxruntime predicts from a file, and its version; None if it is missing."""
    if find_spec("onnxruntime") is None:
        return None
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]

    def predict(inputs: tuple[Tensor, ...]) -> Tensor:
        given = {name: one.numpy() for name, one in zip(names, inputs, strict=True)}
        (found,) = session.run([PREDICTION], given)
        return torch.from_numpy(found)

    return predict, f"onnxruntime {onnxruntime.__version__}"
