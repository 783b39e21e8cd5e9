"""Surrogates as a server: fields by JSON and npy, vectors and derivatives by UM-Bridge."""

from twoscale.serve.limits import Limits
from twoscale.serve.model import Model, load_models
from twoscale.serve.server import Server

__all__ = ["Limits", "Model", "Server", "load_models"]
