from __future__ import annotations

import pytest

from shoal.errors import ConfigError
from shoal.swarm.transport.addresses import parse_address


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("example.org:7447", "tcp/example.org:7447"),
        ("tcp/10.0.0.1:80", "tcp/10.0.0.1:80"),
        (" tls/node-1.example.org:443 ", "tls/node-1.example.org:443"),
        ("[::1]:7447", "tcp/[::1]:7447"),
        ("0.0.0.0:0", "tcp/0.0.0.0:0"),
        ("unix//tmp/a.sock", "unixsock-stream//tmp/a.sock"),
        ("unixsock-stream//tmp/a.sock", "unixsock-stream//tmp/a.sock"),
        ("nats://example.org", "nats://example.org:4222"),
        ("nats://user:word@example.org:4223", "nats://user:word@example.org:4223"),
        ("nats://[::1]:4222/", "nats://[::1]:4222"),
    ],
)
def test_what_people_type(text: str, meaning: str) -> None:
    address = parse_address(text)
    assert str(address) == meaning
    assert parse_address(meaning) == address


def test_host_and_port_mean_tls_where_certificates_are_given() -> None:
    assert str(parse_address("example.org:7447", secure=True)) == "tls/example.org:7447"
    assert str(parse_address("tcp/example.org:7447", secure=True)) == "tcp/example.org:7447"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "no port"),
        ("example.org", "example.org:7447"),
        ("[::1]", "no port"),
        ("::1:7447", "brackets"),
        ("example.org:http", "number from 1 to 65535"),
        ("example.org:70000", "number from 1 to 65535"),
        ("example.org:٣", "number from 1 to 65535"),
        ("http://example.org:80", "tcp/host:port"),
        ("udp/example.org:80", "unknown kind 'udp'"),
        ("tcp/a b:80", "not a host name"),
        ("tcp/host:80?rel=0", "number from 1 to 65535"),
        ("tcp/host:80#iface=eth0", "number from 1 to 65535"),
        ("tcp/host#iface=eth0:80", "not a host name"),
        ("tcp/:80", "not a host name"),
        ("unix/relative.sock", "absolute path"),
        ("unix//tmp/a.sock#bind=x", "absolute path"),
        ("unix//" + "long/" * 30 + "a.sock", "107"),
    ],
)
def test_errors_say_what_to_write(text: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_address(text)
    assert hint in str(caught.value)


def test_the_password_of_a_server_is_not_in_an_error() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_address("nats://user:secret@host:none")
    assert "secret" not in str(caught.value)
