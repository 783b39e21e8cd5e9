"""Networks as plain torch modules, without any knowledge of fits."""

from twoscale.networks.committee import Committee
from twoscale.networks.dense import DenseNetwork, count_parameters
from twoscale.networks.field_encoder import FieldEncoder
from twoscale.networks.field_map import FieldMap, work_shape
from twoscale.networks.fno import FNO2d
from twoscale.networks.fourier import FourierConvolution
from twoscale.networks.refinement import RefinementNet
from twoscale.networks.resample import resample

__all__ = [
    "Committee",
    "DenseNetwork",
    "FNO2d",
    "FieldEncoder",
    "FieldMap",
    "FourierConvolution",
    "RefinementNet",
    "count_parameters",
    "resample",
    "work_shape",
]
