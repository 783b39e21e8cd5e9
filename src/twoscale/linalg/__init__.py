"""Transforms, iterative solvers and PCA: numbers in, numbers out."""
