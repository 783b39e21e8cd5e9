"""The networks the paper compares with: RefinementNet and the Fourier neural operator."""

from twoscale.baselines.fno import FNO2d, SpectralConvolution
from twoscale.baselines.refinement import RefinementNet

__all__ = ["FNO2d", "RefinementNet", "SpectralConvolution"]
