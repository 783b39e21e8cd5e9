"""The page as a file: what is in it, what it refuses, and that it replaces nothing."""

from __future__ import annotations

import json
import re
import sys

import pytest

from tests.explore.conftest import SCRIPTS
from twoscale.errors import TwoscaleError
from twoscale.explore.book import MOST_BYTES, affordable_weights
from twoscale.explore.page import page_text, write_page
from twoscale.surrogate import Surrogate


@pytest.fixture(scope="module")
def text(written):
    return written.path.read_text(encoding="utf-8")


def test_the_page_needs_nothing_else(text, written):
    code = re.sub(r'<script type="application/json".*?</script>', "", text, flags=re.S)
    assert not re.search(r"https?://|@import|src=|url\(", code)
    assert "default-src 'none'" in code
    assert all(f'<script id="{name}">' in code for name in SCRIPTS)
    assert "<!--" not in re.sub(r"<script.*?</script>", "", code, flags=re.S)
    assert written.bytes == len(text.encode())
    assert written.bytes < 10_000_000


def test_the_data_names_runs_and_reasons(text, written):
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])
    runs = {run["name"]: run for run in data["runs"]}
    assert list(runs) == ["smooth", "seamless", "media", "network"]
    assert written.reasons == {"network": "its predictor 'fno' runs in Python only"}
    assert runs["network"]["model"] is None
    assert runs["network"]["predictions"].keys() == {str(one) for one in runs["network"]["samples"]}
    assert runs["smooth"]["samples"] == runs["network"]["samples"]  # stored once
    assert [
        data["inputs"][runs[one]["inputs"]]["channels"][0]["kind"] for one in ("smooth", "media")
    ] == ["smooth", "two-valued"]


def test_a_name_cannot_end_the_script():
    text = page_text({"runs": [{"name": "</script><b>"}]}, "<i>&")
    assert "</script><b>" not in text
    assert "<title>&lt;i&gt;&amp;</title>" in text


@pytest.mark.parametrize("name", ["a<!--<script>b", "<!--data-->", "<!--scripts-->"])
def test_any_name_of_a_run_is_kept(name):
    """Names that mean something to browsers or to the template stay names."""
    text = page_text({"runs": [{"name": name}]}, name)
    inline = re.search(r'id="data">(.*?)</script>', text, re.S)[1]
    assert "<" not in inline
    assert json.loads(inline) == {"runs": [{"name": name}]}
    assert text.count('<script id="main.js">') == 1


def test_weights_are_rounded_and_left_out_as_room_shrinks(folder):
    surrogates = [Surrogate.load(folder / name) for name in ("smooth", "seamless")]

    def sizes(weights):
        texts = [re.findall('"data": "(.*?)"', json.dumps(content)) for content, _ in weights]
        return [sum(map(len, found)) for found in texts]

    exact = affordable_weights(surrogates, MOST_BYTES)
    assert not any(content["small"] for content, _ in exact)
    rounded = affordable_weights(surrogates, sum(sizes(exact)) - 1)
    assert all(content["small"] for content, _ in rounded)
    (one, why), (other, reason) = affordable_weights(surrogates, min(sizes(rounded)))
    assert (one is None) != (other is None)
    assert "too much for a page" in why + reason


def test_nothing_is_replaced_unless_asked(folder, tmp_path):
    out = tmp_path / "page.html"
    out.write_text("mine")
    with pytest.raises(TwoscaleError, match="exists already"):
        write_page([folder / "smooth"], out)
    assert out.read_text() == "mine"
    write_page([folder / "smooth"], out, overwrite=True)
    assert out.read_text().startswith("<!doctype html>")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_bad_requests_are_explained(folder, tmp_path):
    saved = tmp_path / "saved"
    Surrogate.load(folder / "smooth").save(saved)
    with pytest.raises(TwoscaleError, match="saved from Python"):
        write_page([saved], tmp_path / "page.html")
    with pytest.raises(TwoscaleError, match="is a folder"):
        write_page([folder / "smooth"], tmp_path)
    with pytest.raises(TwoscaleError, match="at most 12"):
        write_page([folder / "smooth"] * 13, tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_the_command_writes_a_page(twoscale, folder, tmp_path):
    out = tmp_path / "page.html"
    result = twoscale("explore", folder / "smooth", folder / "network", "--out", out, "--json")
    assert result.status == 0, result.err
    found = json.loads(result.out)
    assert found["runs"] == ["smooth", "network"]
    assert found["needs_serve"] == {"network": "its predictor 'fno' runs in Python only"}
    again = twoscale("explore", folder / "smooth", "--out", out)
    assert again.status == 2
    assert "overwrite" in again.err
    assert twoscale("explore", folder / "none", "--out", tmp_path / "b.html").status == 2


def test_the_command_serves_and_opens(twoscale, folder, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("twoscale.serve.HttpServer.run", lambda server: None)
    out = tmp_path / "page.html"
    served = twoscale("explore", folder / "network", "--out", out, "--serve", "--open", "--json")
    assert served.status == 0, served.err
    assert opened == [json.loads(served.out)["address"]]
    assert opened[0].startswith("http://127.0.0.1:")
    again = twoscale("explore", folder / "smooth", "--out", out, "--overwrite", "--open")
    assert (again.status, opened[1]) == (0, out.as_uri())


def test_the_extra_is_named_before_any_work(twoscale, folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "starlette", None)
    out = tmp_path / "page.html"
    served = twoscale("explore", folder / "smooth", "--out", out, "--serve")
    assert (served.status, out.exists()) == (2, False)
    assert "pip install 'twoscale[serve]'" in served.err
