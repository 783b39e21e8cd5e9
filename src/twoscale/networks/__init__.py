"""Networks as plain torch modules, without any knowledge of fits."""

from twoscale.networks.dense import DenseNetwork, count_parameters
from twoscale.networks.field_encoder import FieldEncoder
from twoscale.networks.field_map import Committee, FieldMap, resample, work_shape
from twoscale.networks.fno import FNO2d
from twoscale.networks.periodic import RefinementNet

__all__ = [
    "Committee",
    "DenseNetwork",
    "FNO2d",
    "FieldEncoder",
    "FieldMap",
    "RefinementNet",
    "count_parameters",
    "resample",
    "work_shape",
]
