"""The networks the paper compares with: RefinementNet and the Fourier neural operator."""

from twoscale.baselines.fno import FNO2d
from twoscale.baselines.fourier import FourierConvolution
from twoscale.baselines.refinement import RefinementNet

__all__ = ["FNO2d", "FourierConvolution", "RefinementNet"]
