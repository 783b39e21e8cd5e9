"""What the README shows runs as it is shown."""

import re
from pathlib import Path

from twoscale import METHODS, Surrogate

README = Path(__file__).parents[1] / "README.md"


def test_the_python_lines_run(poisson16, tmp_path, monkeypatch):
    (block,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len([line for line in block.splitlines() if line.strip()]) == 5
    for method in METHODS.values():
        monkeypatch.setitem(method.defaults, "epochs", 2)
    monkeypatch.chdir(tmp_path)
    x, u = (fields.numpy() for fields in poisson16)
    names = {"x": x[:150], "u": u[:150], "x_new": x[150:160], "x_test": x[160:], "u_test": u[160:]}
    exec(block, names)
    assert names["u_new"].shape == (10, 16, 16)
    assert [path.name for path in tmp_path.iterdir()] == ["surrogate"]
    loaded = Surrogate.load("surrogate").predict(names["x_new"])
    assert (loaded == names["u_new"]).all()
