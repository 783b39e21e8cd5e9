"""The contract suite, for every method and for parts of one's own choice."""

from typing import Any, ClassVar

from tests.surrogate.contract import MethodContract
from twoscale import METHODS


class TestGlobal(MethodContract):
    method = "global"
    settings: ClassVar[dict[str, Any]] = {"epochs": 2}


class TestLocal(MethodContract):
    method = "local"
    settings: ClassVar[dict[str, Any]] = {"epochs": 2}


class TestOverlap(MethodContract):
    method = "overlap"
    settings: ClassVar[dict[str, Any]] = {"epochs": 2}


class TestRefinement(MethodContract):
    method = "refinement"
    settings: ClassVar[dict[str, Any]] = {"epochs": 2, "refinement_epochs": 1, "channels": 4}
    tunable = False


class TestFNO(MethodContract):
    method = "fno"
    settings: ClassVar[dict[str, Any]] = {"epochs": 1, "width": 4, "layers": 2, "modes": 4}
    tunable = False


class TestTwoScale(MethodContract):
    method = "two-scale"
    settings: ClassVar[dict[str, Any]] = {
        "epochs": 2,
        "coarse_components": 4,
        "few_features": False,
    }


class TestThreeScale(MethodContract):
    method = "three-scale"
    settings: ClassVar[dict[str, Any]] = {
        "epochs": 2,
        "coarse_components": 4,
        "few_features": False,
    }


class TestConforming(MethodContract):
    method = "conforming"
    settings: ClassVar[dict[str, Any]] = {"epochs": 2, "code_size": 40}


class TestWholeField(MethodContract):
    method = "whole-field"
    settings: ClassVar[dict[str, Any]] = {"epochs": 1, "width": 4, "blocks": 1}
    tunable = False


class TestAffine(MethodContract):
    method = "two-scale"
    settings: ClassVar[dict[str, Any]] = {
        "predictor": "affine",
        "coarse_components": 4,
        "few_features": False,
    }


class TestKernel(MethodContract):
    method = "two-scale"
    settings: ClassVar[dict[str, Any]] = {
        "predictor": "kernel",
        "coarse_components": 4,
        "few_features": False,
    }
    tunable = False


class TestEncoder(MethodContract):
    method = "two-scale"
    settings: ClassVar[dict[str, Any]] = {
        "predictor": "encoder",
        "epochs": 1,
        "width": 4,
        "coarse_components": 4,
        "few_features": False,
    }


class TestFilter(MethodContract):
    method = "whole-field"
    settings: ClassVar[dict[str, Any]] = {"predictor": "filter"}
    tunable = False
    needs_fields = True


def test_every_method_keeps_the_contract():
    kept = {one.method for one in MethodContract.__subclasses__()}
    assert kept == set(METHODS)
