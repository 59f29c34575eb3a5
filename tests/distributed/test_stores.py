"""Stores: what every kind can do, and what a wait that is in vain says."""

import socket
import threading
from datetime import timedelta

import pytest

import pullback as torch

dist = torch.distributed
SHORT = timedelta(milliseconds=50)


def tcp_pair():
    held = dist.TCPStore("127.0.0.1", 0, 1, True, timedelta(seconds=400))
    return held, dist.TCPStore("127.0.0.1", held.port, None, False, timedelta(seconds=400))


def pair(kind, tmp_path):
    """Two stores that see the same."""
    if kind == "tcp":
        return tcp_pair()
    if kind == "file":
        return dist.FileStore(str(tmp_path / "store"), 2), dist.FileStore(str(tmp_path / "store"), 2)
    one = dist.HashStore()
    return (one, one) if kind == "hash" else (dist.PrefixStore("a", one), dist.PrefixStore("a", one))


@pytest.mark.parametrize("kind", ["hash", "file", "tcp", "prefix"])
def test_what_one_puts_the_other_finds(kind, tmp_path):
    one, other = pair(kind, tmp_path)
    one.set("key", "value")
    assert other.get("key") == b"value"
    assert (one.add("n", 3), other.add("n", -1), one.get("n")) == (3, 2, b"2")
    assert one.compare_set("c", "", "first") == b"first"
    assert other.compare_set("c", "no", "second") == b"first"
    assert one.compare_set("c", "first", "second") == other.get("c") == b"second"
    assert one.compare_set("absent", "expected", "x") == b"expected"
    assert not one.check(["absent"]) and one.check(["c", "key"])
    one.append("text", "a")
    one.append("text", b"b")
    assert one.get("text") == other.get("text") == b"ab"
    one.multi_set(["x", "y"], ["1", "2"])
    assert other.multi_get(["x", "y"]) == [b"1", b"2"]
    assert one.delete_key("x") and not other.check(["x"]) and not other.delete_key("x")


@pytest.mark.parametrize("kind", ["hash", "file", "tcp", "prefix"])
def test_a_wait_in_vain_ends_and_one_that_is_not_goes_on(kind, tmp_path):
    one, other = pair(kind, tmp_path)
    with pytest.raises(RuntimeError, match=r"[Ww]ait timeout"):
        one.wait(["never"], SHORT)
    one.set_timeout(SHORT)
    with pytest.raises(RuntimeError, match=r"[Tt]imeout"):
        one.get("never")
    one.set_timeout(timedelta(seconds=400))
    later = threading.Timer(0.05, lambda: other.set("soon", "here"))
    later.start()
    assert one.get("soon") == b"here"
    later.join()


def test_queues_are_first_in_first_out():
    for one, other in (tcp_pair(), (dist.HashStore(),) * 2):
        one.queue_push("q", "1")
        one.queue_push("q", "2")
        assert (one.queue_len("q"), other.queue_pop("q"), one.queue_pop("q", False)) == (2, b"1", b"2")
        with pytest.raises(dist.QueueEmptyError, match="queue is empty"):
            one.queue_pop("q", False)


def test_nobody_at_the_port_is_said_in_time():
    with pytest.raises(
        dist.DistNetworkError, match=r"timed out after 100ms while trying to connect to \(127.0.0.1, 1\)"
    ):
        dist.TCPStore("127.0.0.1", 1, 2, False, timedelta(milliseconds=100))


def test_workers_that_do_not_come_are_counted():
    with pytest.raises(dist.DistStoreError, match="1/2 clients joined"):
        dist.TCPStore("127.0.0.1", 0, 2, True, timedelta(milliseconds=100))


def test_values_must_be_text_or_bytes():
    with pytest.raises(TypeError, match=r"set\(\): incompatible function arguments"):
        dist.HashStore().set("a", 1)


def test_a_stranger_at_the_port_is_shown_out():
    held, other = tcp_pair()
    with socket.create_connection(("127.0.0.1", held.port)) as stranger:
        stranger.settimeout(10)
        stranger.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert stranger.recv(1) == b""
    other.set("still", "here")
    assert held.get("still") == b"here"
