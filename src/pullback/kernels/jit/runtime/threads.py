"""The thread pool, itself a kernel: workers that take chunks of a range until none is left, and sleep when idle.

`pullback_parallel_for(function, args, count, grain)` cuts `count` items into chunks, a few per thread, and runs
`function(args, begin, end, worker)` on each. The cut depends on the count, the grain and the number of threads alone,
so results do not depend on who took which chunk. Each worker begins with its own span of neighbouring chunks, the same
part of the range at every call, whose data its cache holds from the last one: cores may be far from each other, and a
line that another one has written comes as slowly as from memory. Who is done helps the others. A second Python thread
that comes while the pool is busy runs its chunks itself; after a fork the child starts workers of its own.
"""

from __future__ import annotations

import ctypes
import os
import threading
from functools import cache

import llvmlite.binding as llvm

from pullback._runtime.building import made
from pullback.kernels import workers
from pullback.kernels.jit.compiler import engine
from pullback.kernels.jit.compiler.target import TRIPLE

WAIT = {"x86_64": "pause", "i686": "pause", "aarch64": "yield", "arm64": "yield"}.get(TRIPLE.split("-")[0])
PAUSE = f'call void asm sideeffect "{WAIT}", "~{{memory}}"()' if WAIT else ""
"""Tells the core that it is waiting."""

# @state: generation << 32 | open << 16 | how many workers are inside. @crew: how many threads the present work is for.
# Hot words stand on cache lines of their own.
SOURCE = r"""
@state = global i64 0, align 128
@next = global [SPANS x [LINE x i64]] zeroinitializer, align 128
@spans = global i64 1
@count = global i64 0, align 128
@chunk = global i64 0
@function = global ptr null
@arguments = global ptr null
@busy = global i64 0, align 128
@sleepers = global i64 0, align 128
@threads = global i64 1
@crew = global i64 1
@patience = global i64 3000
@place = global i64 -1
@mutex = global [16 x i64] zeroinitializer, align 64
@condition = global [16 x i64] zeroinitializer, align 64
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)

define void @pullback_pool_reset() {
  store i64 0, ptr @state
  store i64 0, ptr @busy
  store i64 0, ptr @sleepers
  %a = call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  %b = call i32 @pthread_cond_init(ptr @condition, ptr null)
  ret void
}
define void @pullback_pool_threads(i64 %n) {
  store atomic i64 %n, ptr @threads seq_cst, align 8
  ret void
}
define internal i64 @end_of(i64 %span, i64 %spans, i64 %n, i64 %c) alwaysinline {
  %up = add i64 %n, %c
  %up1 = sub i64 %up, 1
  %chunks = sdiv i64 %up1, %c
  %share = mul i64 %span, %chunks
  %first = sdiv i64 %share, %spans
  %at = mul i64 %first, %c
  ret i64 %at
}
define internal void @take_chunks(i64 %worker) {
entry:
  %f = load ptr, ptr @function
  %args = load ptr, ptr @arguments
  %n = load i64, ptr @count
  %c = load i64, ptr @chunk
  %spans = load i64, ptr @spans
  %own = srem i64 %worker, %spans
  br label %span
span:
  %nr = phi i64 [0, %entry], [%nr1, %after]
  %on = add i64 %own, %nr
  %s = srem i64 %on, %spans
  %s1 = add i64 %s, 1
  %stop = call i64 @end_of(i64 %s1, i64 %spans, i64 %n, i64 %c)
  %next = getelementptr [LINE x i64], ptr @next, i64 %s
  br label %head
head:
  %seen = load atomic i64, ptr %next monotonic, align 8
  %some = icmp slt i64 %seen, %stop
  br i1 %some, label %take, label %after
take:
  %i = atomicrmw add ptr %next, i64 %c seq_cst
  %more = icmp slt i64 %i, %stop
  br i1 %more, label %body, label %after
body:
  %far = add i64 %i, %c
  %within = icmp slt i64 %far, %n
  %end = select i1 %within, i64 %far, i64 %n
  call void %f(ptr %args, i64 %i, i64 %end, i64 %worker)
  br label %head
after:
  %nr1 = add i64 %nr, 1
  %others = icmp slt i64 %nr1, %spans
  br i1 %others, label %span, label %done
done:
  ret void
}
define internal i1 @is_work(i64 %s, i64 %last, i64 %worker) alwaysinline {
  %generation = lshr i64 %s, 32
  %bit = and i64 %s, 65536
  %open = icmp ne i64 %bit, 0
  %new = icmp ne i64 %generation, %last
  %t = load atomic i64, ptr @crew monotonic, align 8
  %wanted = icmp slt i64 %worker, %t
  %a = and i1 %open, %new
  %b = and i1 %a, %wanted
  ret i1 %b
}
define void @pullback_pool_worker(i64 %worker, ptr %allowed) {
entry:
  %others = alloca [MASK x i8], align 8
  br label %wait
wait:
  %last = phi i64 [0, %entry], [%generation, %inside]
  br label %look
look:
  %k = phi i64 [0, %wait], [%k1, %again], [0, %awake]
  %s = load atomic i64, ptr @state acquire, align 8
  %generation = lshr i64 %s, 32
  %work = call i1 @is_work(i64 %s, i64 %last, i64 %worker)
  br i1 %work, label %join, label %idle
idle:
  PAUSE
  %k1 = add i64 %k, 1
  %limit = load i64, ptr @patience
  %tired = icmp sgt i64 %k1, %limit
  br i1 %tired, label %rest, label %again
again:
  br label %look
rest:
  %l = call i32 @pthread_mutex_lock(ptr @mutex)
  %x = atomicrmw add ptr @sleepers, i64 1 seq_cst
  %s2 = load atomic i64, ptr @state seq_cst, align 8
  %came = call i1 @is_work(i64 %s2, i64 %last, i64 %worker)
  br i1 %came, label %rise, label %sleep
sleep:
  %w = call i32 @pthread_cond_wait(ptr @condition, ptr @mutex)
  br label %rise
rise:
  %y = atomicrmw sub ptr @sleepers, i64 1 seq_cst
  %u = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %awake
awake:
  br label %look
join:
  %s4 = add i64 %s, 1
  %pair = cmpxchg ptr @state, i64 %s, i64 %s4 seq_cst seq_cst
  %joined = extractvalue {i64, i1} %pair, 1
  br i1 %joined, label %aside, label %awake
aside:
  STEP_ASIDE
  br label %inside
inside:
  call void @take_chunks(i64 %worker)
  %s5 = atomicrmw sub ptr @state, i64 1 seq_cst
  br label %wait
}
define void @pullback_parallel_for(ptr %f, ptr %args, i64 %n, i64 %grain) {
entry:
  %small = icmp sle i64 %n, %grain
  br i1 %small, label %whole, label %cut
whole:
  call void %f(ptr %args, i64 0, i64 %n, i64 0)
  ret void
cut:
  ; one to four chunks a thread, equal but for the last and not below the grain; fewer chunks than threads if need be
  %t = load atomic i64, ptr @threads monotonic, align 8
  %round = mul i64 %t, %grain
  %rounds = sdiv i64 %n, %round
  %many = icmp sgt i64 %rounds, 4
  %k = select i1 %many, i64 4, i64 %rounds
  %full = mul i64 %t, %k
  %grains = sdiv i64 %n, %grain
  %few = icmp slt i64 %grains, 2
  %least = select i1 %few, i64 2, i64 %grains
  %enough = icmp sgt i64 %k, 0
  %p0 = select i1 %enough, i64 %full, i64 %least
  %t4 = shl i64 %t, 2
  %single = icmp eq i64 %grain, 1
  %p = select i1 %single, i64 %t4, i64 %p0
  %a0 = add i64 %n, %p
  %a1 = sub i64 %a0, 1
  %a2 = sdiv i64 %a1, %p
  ; they begin at multiples of the grain's power of two up to 64, so that vectors keep their place in memory
  %minus = sub i64 0, %grain
  %low = and i64 %grain, %minus
  %wide = icmp sgt i64 %low, 64
  %unit = select i1 %wide, i64 64, i64 %low
  %b0 = add i64 %a2, %unit
  %b1 = sub i64 %b0, 1
  %b2 = sdiv i64 %b1, %unit
  %c = mul i64 %b2, %unit
  %alone = icmp sle i64 %t, 1
  br i1 %alone, label %serial, label %ask
ask:
  %pair = cmpxchg ptr @busy, i64 0, i64 1 seq_cst seq_cst
  %got = extractvalue {i64, i1} %pair, 1
  br i1 %got, label %parallel, label %serial
serial:
  %i = phi i64 [0, %cut], [0, %ask], [%end, %serial]
  %far = add i64 %i, %c
  %within = icmp slt i64 %far, %n
  %end = select i1 %within, i64 %far, i64 %n
  call void %f(ptr %args, i64 %i, i64 %end, i64 0)
  br i1 %within, label %serial, label %over
over:
  ret void
parallel:
  store ptr %f, ptr @function
  store ptr %args, ptr @arguments
  store i64 %n, ptr @count
  store i64 %c, ptr @chunk
  %wide_crew = icmp sgt i64 %t, SPANS
  %spans = select i1 %wide_crew, i64 SPANS, i64 %t
  store i64 %spans, ptr @spans
  br label %span
span:
  %s0 = phi i64 [0, %parallel], [%s1, %span]
  %first = call i64 @end_of(i64 %s0, i64 %spans, i64 %n, i64 %c)
  %at = getelementptr [LINE x i64], ptr @next, i64 %s0
  store i64 %first, ptr %at
  %s1 = add i64 %s0, 1
  %others = icmp slt i64 %s1, %spans
  br i1 %others, label %span, label %open
open:
  TELL_PLACE
  store atomic i64 %t, ptr @crew monotonic, align 8
  %s = load atomic i64, ptr @state seq_cst, align 8
  %g = lshr i64 %s, 32
  %g1 = add i64 %g, 1
  %g2 = shl i64 %g1, 32
  %opened = or i64 %g2, 65536
  store atomic i64 %opened, ptr @state seq_cst, align 8
  %asleep = load atomic i64, ptr @sleepers seq_cst, align 8
  %any = icmp ne i64 %asleep, 0
  br i1 %any, label %wake, label %run
wake:
  %l = call i32 @pthread_mutex_lock(ptr @mutex)
  %b = call i32 @pthread_cond_broadcast(ptr @condition)
  %u = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %run
run:
  call void @take_chunks(i64 0)
  %closed = atomicrmw and ptr @state, i64 -65537 seq_cst
  br label %finish
finish:
  %now = load atomic i64, ptr @state acquire, align 8
  %inside = and i64 %now, 65535
  %left = icmp eq i64 %inside, 0
  br i1 %left, label %end_parallel, label %still
still:
  PAUSE
  br label %finish
end_parallel:
  store atomic i64 0, ptr @busy release, align 8
  ret void
}
"""

SPANS, LINE = 64, 16
"""Spans of chunks at most, and the words from the counter of one to that of the next: none share a cache line."""
MASK = 128
"""Bytes of a set of cores, one bit each."""
DECLARATIONS = """
declare i32 @sched_getcpu()
declare i32 @sched_setaffinity(i32, i64, ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""
TELL_PLACE = """%cpu = call i32 @sched_getcpu()
  %here = sext i32 %cpu to i64
  store atomic i64 %here, ptr @place monotonic, align 8"""
STEP_ASIDE = f"""%cpu = call i32 @sched_getcpu()
  %mine = sext i32 %cpu to i64
  %place = load atomic i64, ptr @place monotonic, align 8
  %same = icmp eq i64 %mine, %place
  %free = icmp ne ptr %allowed, null
  %close = and i1 %same, %free
  br i1 %close, label %move, label %inside
move:
  call void @llvm.memcpy.p0.p0.i64(ptr %others, ptr %allowed, i64 {MASK}, i1 false)
  %byte = lshr i64 %mine, 3
  %low = and i64 %mine, 7
  %bit = shl i64 1, %low
  %mask = trunc i64 %bit to i8
  %without = xor i8 %mask, -1
  %spot = getelementptr i8, ptr %others, i64 %byte
  %had = load i8, ptr %spot
  %has = and i8 %had, %without
  store i8 %has, ptr %spot
  %moved = call i32 @sched_setaffinity(i32 0, i64 {MASK}, ptr %others)"""
"""A worker that wakes on the core of the thread it is to help leaves it to that one.

Linux puts it there when the other cores look busy, be it with a thread of another library that only spins, and wakes it
there again and again: work took twice as long for whole seconds. The worker keeps to the other cores then.
"""


@cache
def can_move() -> bool:
    """Whether threads can say on which core they run and where they want to."""
    return "linux" in TRIPLE and all([engine.has_symbol(name) for name in ("sched_getcpu", "sched_setaffinity")])


def source() -> str:
    """The module for this system."""
    moving = can_move()
    text = SOURCE.replace("PAUSE", PAUSE).replace("TELL_PLACE", TELL_PLACE if moving else "")
    text = text.replace("STEP_ASIDE", STEP_ASIDE if moving else "").replace("MASK", str(MASK))
    text = text.replace("SPANS", str(SPANS)).replace("LINE", str(LINE))
    return text + (DECLARATIONS if moving else "")


class Pool:
    """The workers of this process."""

    def __init__(self) -> None:
        names = ["pullback_pool_reset", "pullback_pool_threads", "pullback_pool_worker", "pullback_parallel_for"]
        reset, threads, worker, parallel = engine.load(source(), names)
        llvm.add_symbol("pullback_parallel_for", parallel)
        self.reset = ctypes.CFUNCTYPE(None)(reset)
        self.announce = ctypes.CFUNCTYPE(None, ctypes.c_int64)(threads)
        self.work = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(worker)
        self.wanted = self.started = 1
        self.reset()
        workers.listeners.append(self.set_threads)
        workers.set_threads(workers.threads())
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.after_fork)

    def set_threads(self, count: int) -> None:
        """Use that many threads from now on; workers too many stay asleep."""
        self.wanted = count
        while self.started < count:
            args = (self.started, allowed_cores())
            threading.Thread(target=self.work, args=args, name="pullback worker", daemon=True).start()
            self.started += 1
        self.announce(count)

    def after_fork(self) -> None:
        """Only the forking thread lives on in the child."""
        self.started = 1
        self.reset()
        self.set_threads(self.wanted)


def allowed_cores() -> ctypes.Array[ctypes.c_char] | None:
    """The cores this thread, and so a thread it starts, may run on, as a mask; None if there is nothing to choose."""
    cores = os.sched_getaffinity(0) if can_move() else set()
    if len(cores) < 2 or max(cores) >= 8 * MASK:
        return None
    return ctypes.create_string_buffer(sum([1 << core for core in cores]).to_bytes(MASK, "little"), MASK)


@cache
def start() -> Pool:
    """The pool, made when the first kernel is."""
    return made(only)


@cache
def only() -> Pool:
    """The one there is: asked for by one thread at a time."""
    return Pool()
