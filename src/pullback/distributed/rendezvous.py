"""How ranks find the store: `env://`, `tcp://host:port` and `file:///path`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlparse

from pullback.distributed.constants import default_pg_timeout
from pullback.distributed.stores import FileStore, Store
from pullback.distributed.tcp_store import TCPStore

Found = tuple[Store, int, int]
handlers: dict[str, Callable[..., Iterator[Found]]] = {}


def register_rendezvous_handler(scheme: str, handler: Callable[..., Iterator[Found]]) -> None:
    """Let `init_method="scheme://..."` find its store by a function of one's own."""
    if scheme in handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Iterator[Found]:
    """The store that an address means, with the rank and the number of ranks."""
    if not isinstance(url, (str, bytes)):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    for name, value in (("rank", rank), ("world_size", world_size)):
        if not isinstance(value, int):
            raise RuntimeError(f"`{name}` must be an integer. {value}")
    parts = urlparse(str(url))
    if rank != -1 or world_size != -1:
        query = dict(parse_qsl(parts.query))
        if "rank" in query or "world_size" in query:
            raise AssertionError(f"The url: {url!r} has node-specific arguments(rank, world_size) already.")
        given = [f"{name}={value}" for name, value in (("rank", rank), ("world_size", world_size)) if value != -1]
        parts = parts._replace(query="&".join([*filter(None, [parts.query]), *given]))
    if parts.scheme not in handlers:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    return handlers[parts.scheme](parts.geturl(), **kwargs)


def of_query(scheme: str, url: str) -> tuple[int, int]:
    """The rank and the number of ranks, which the address must say."""
    query = dict(parse_qsl(urlparse(url).query))
    for name, words in (("rank", "rank"), ("world_size", "world size")):
        if name not in query:
            raise mistake(scheme, f"{words} parameter missing")
    return int(query["rank"]), int(query["world_size"])


def mistake(scheme: str, text: str) -> ValueError:
    """What is wrong with an address."""
    return ValueError(f"Error initializing torch.distributed using {scheme}:// rendezvous: {text}")


def tcp_store(host: str, port: int, rank: int, world_size: int, timeout: timedelta) -> Store:
    """The store at a port: rank 0 holds it, unless whoever started the ranks does."""
    if not 0 <= port < 1 << 16:
        raise ValueError(f"port must have value from 0 to 65535 but was {port}.")
    holds = rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    return TCPStore(host, port, world_size, holds, timeout, multi_tenant=True)


def from_file(url: str, **kwargs: Any) -> Iterator[Found]:
    """`file:///path`."""
    path = urlparse(url).path
    if not path:
        raise mistake("file", "path missing")
    rank, world_size = of_query("file", url)
    yield FileStore(path, world_size), rank, world_size
    raise RuntimeError("Unable to perform rerendezvous using file:// method")


def from_tcp(url: str, timeout: timedelta = default_pg_timeout, **kwargs: Any) -> Iterator[Found]:
    """`tcp://host:port`."""
    parts = urlparse(url)
    if parts.port is None:
        raise mistake("tcp", "port number missing")
    rank, world_size = of_query("tcp", url)
    yield tcp_store(str(parts.hostname), parts.port, rank, world_size, timeout), rank, world_size
    raise RuntimeError("Unable to perform re-rendezvous using tcp:// method")


def from_env(url: str, timeout: timedelta = default_pg_timeout, **kwargs: Any) -> Iterator[Found]:
    """`env://`: what `torchrun` and `pullback launch` put into the environment."""
    query = dict(parse_qsl(urlparse(url).query))

    def word(name: str) -> str:
        value = os.environ.get(name)
        if not value:
            raise mistake("env", f"environment variable {name} expected, but not set")
        return value

    rank = int(query["rank"] if "rank" in query else word("RANK"))
    world_size = int(query["world_size"] if "world_size" in query else word("WORLD_SIZE"))
    host, port = word("MASTER_ADDR"), int(word("MASTER_PORT"))
    yield tcp_store(host, port, rank, world_size, timeout), rank, world_size
    raise RuntimeError("Unable to perform re-rendezvous using env:// method")


register_rendezvous_handler("tcp", from_tcp)
register_rendezvous_handler("env", from_env)
register_rendezvous_handler("file", from_file)
