"""`torch.Stream` and `torch.Event` of the host, which has one stream and no events, as torch has them."""

import pytest

from ..both import same

CALLS = {
    "streams are equal": lambda t: (t.Stream() == t.Stream("cpu"), t.Stream() != t.Stream("meta"), t.Stream() == 1),
    "their hashes": lambda t: hash(t.Stream()) == hash(t.Stream("cpu")),
    "repr": lambda t: (repr(t.Stream()), repr(t.Stream("meta")), repr(t.Event()), repr(t.Event(enable_timing=True))),
    "facts": lambda t: [(s.device.type, s.device_type, s.device_index, s.stream_id) for s in (t.Stream("cpu"),)],
    "done": lambda t: (t.Stream().query(), t.Stream().synchronize(), t.Stream().is_capturing(), t.Event().query()),
    "as a context": lambda t: repr(t.Stream().__enter__()),
    "by its number": lambda t: repr(t.Stream(stream_id=3, device_index=-1, device_type=0)),
    "native handle": lambda t: t.Stream().native_handle,
    "record_event": lambda t: t.Stream().record_event(),
    "wait_stream": lambda t: t.Stream().wait_stream(t.Stream()),
    "wait_event": lambda t: (t.Stream().wait_event(t.Event()), t.Event().wait(), t.Event().synchronize()),
    "record": lambda t: t.Event("cpu").record(),
    "elapsed without timing": lambda t: t.Event().elapsed_time(t.Event()),
    "elapsed before": lambda t: t.Event(enable_timing=True).elapsed_time(t.Event(enable_timing=True)),
    "event facts": lambda t: (t.Event().device.type, t.Event().event_id),
    "handle of an event": lambda t: t.Event().ipc_handle(),
    "stream of no device": lambda t: t.Stream("cuda"),
    "event of no device": lambda t: t.Event("cuda:0"),
    "stream of a number": lambda t: t.Stream(1),
    "unknown device": lambda t: t.Stream("bogus"),
    "list": lambda t: t.Stream([]),
    "unknown keyword": lambda t: t.Event(foo=1),
    "a pool without a device": lambda t: t.cuda.MemPool(),
    "an event without a device": lambda t: t.cuda.Event(),
}


@pytest.mark.parametrize("name", CALLS)
def test_streams_and_events_of_the_host(name):
    same(CALLS[name])
