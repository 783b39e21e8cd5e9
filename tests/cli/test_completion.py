"""What the shell offers."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.cli.test_lazy import HEAVY

CODE = f"""
import contextlib, os, sys
from twoscale.cli import main
os.environ["_TWOSCALE_COMPLETE"] = "complete_bash"
for line in sys.argv[1:]:
    os.environ["COMP_WORDS"] = line
    os.environ["COMP_CWORD"] = str(len(line.split(" ")) - 1)
    sys.argv = ["twoscale"]
    with contextlib.suppress(SystemExit):
        main()
    print("--")
print(sorted(set(sys.modules) & set({HEAVY!r})))
"""

OFFERED = {
    "twoscale fi": ["finetune", "fit"],
    "twoscale fit d --met": ["--method"],
    "twoscale fit d --method t": ["three-scale", "two-scale"],
    "twoscale fit d --set epo": ["epochs="],
    "twoscale generate po": ["poisson"],
    "twoscale finetune r --objective A": ["A1", "A2", "A3", "A4", "A5"],
}
if find_spec("twoscale_lab"):
    OFFERED |= {
        "twoscale study ru": ["run"],
        "twoscale study run head": ["headline"],
        "twoscale bench inf": ["inference"],
    }


@pytest.fixture(scope="module")
def offered():
    result = subprocess.run(
        [sys.executable, "-c", CODE, *OFFERED], capture_output=True, text=True, check=True
    )
    *parts, loaded = result.stdout.split("--\n")
    found = {line: sorted(part.split()) for line, part in zip(OFFERED, parts, strict=True)}
    return found, loaded.strip()


def test_commands_options_and_names_are_offered(offered):
    assert offered[0] == OFFERED


def test_completion_loads_nothing_heavy(offered):
    assert offered[1] == "[]"


def test_the_script_for_a_shell_is_shown(twoscale):
    outcome = twoscale("--show-completion", "bash")
    assert outcome.status == 0
    assert "_TWOSCALE_COMPLETE=complete_bash" in outcome.out
