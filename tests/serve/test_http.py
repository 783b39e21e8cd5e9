"""A server answers to its own names, and not to pages of others."""

import httpx
import pytest

from twoscale.serve import ServedModel, Server
from twoscale.serve.http import own_hosts


def status(server, **headers):
    given = {name: value.replace("PORT", port_of(server)) for name, value in headers.items()}
    return httpx.get(server.url + "/health", headers=given, timeout=30).status_code


def port_of(server):
    return server.url.rsplit(":", 1)[1]


@pytest.mark.parametrize(
    "host", ["localhost:PORT", "127.0.0.1:PORT", "[::1]:PORT", "LocalHost:PORT"]
)
def test_own_names(server, host):
    assert status(server, host=host) == 200
    assert status(server, host=host, origin=f"http://{host}") == 200
    assert status(server, origin="http://localhost:PORT") == 200


@pytest.mark.parametrize(
    "host", ["evil.example:PORT", "localhost", "localhost:1", "", "a@localhost"]
)
def test_other_names_are_refused(server, host, caplog):
    headers = {"host": host.replace("PORT", port_of(server))}
    answer = httpx.get(server.url + "/health", headers=headers, timeout=30)
    assert answer.status_code == 403
    assert answer.json()["error"]["type"] == "Forbidden"
    assert "GET /health: 403, this server is called 127.0.0.1:" in caplog.text


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:1", "http://[", ""]
)
def test_other_origins_are_refused(server, origin, caplog):
    assert status(server, origin=origin) == 403
    assert f"pages of '{origin}' may not use this server" in caplog.text


def test_an_open_server_takes_any_name_and_its_own_pages(surrogate):
    with Server([ServedModel(surrogate)], host="0.0.0.0", port=0) as server:
        assert server.is_open
        assert status(server, host="any.example") == 200
        assert status(server, host="any.example", origin="https://any.example") == 200
        assert status(server, host="any.example", origin="https://evil.example") == 403


def test_addresses_of_this_machine_only():
    assert own_hosts("0.0.0.0", 80) is None
    assert own_hosts("192.0.2.1", 80) is None
    assert "[::1]:4242" in own_hosts("::1", 4242)
    assert "127.0.0.2:4242" in own_hosts("127.0.0.2", 4242)
    assert "localhost" in own_hosts("127.0.0.1", 80)
