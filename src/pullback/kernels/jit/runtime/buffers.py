"""Where large arrays live: NumPy's allocator with free lists, so that a fresh result costs no page faults.

A new block of some megabytes costs more than the arithmetic that fills it, because the system clears and maps every
page. Blocks of 64 KiB and more therefore go to a free list when their array dies, and the next array of about that
size takes them from there. The lists are bounded; what goes beyond is returned to the system. Their sizes are rounded
up to one of four steps per power of two, and they start on a 64-byte boundary.

Blocks under 1 KiB have lists too, one for each multiple of 16 bytes, as in NumPy's own allocator; like there, the
interpreter's lock guards them. What lies between goes straight to the C library.

Right before each block stand its class (below zero for blocks without a list of the first kind) and its size, and
before those of large blocks the address of the C library's own block.
"""

from __future__ import annotations

import ctypes
import os
import sys

import numpy as np

from pullback._runtime.builtins import lasting
from pullback._runtime.quiet import set_everywhere
from pullback.kernels.jit.compiler import engine, target

LEAST = 65536
CLASSES = 4 * 64 + 4
STRETCH = 11
"""How many classes above its own an array may take its block from: up to eight times its size. With 3 the lists of a
ResNet's inference held 148 MB in sizes it had no more use for, with 11 they hold 102."""
TINY, STEP = 1024, 16
MOST_TINY = 256
"""How many blocks each list of tiny ones holds at most."""
COUNTERS = ["live", "kept", "limit", "hits", "misses", "returned", "peak"]

SOURCE = f"""
@live = global i64 0, align 64
@kept = global i64 0
@limit = global i64 0
@hits = global i64 0
@misses = global i64 0
@returned = global i64 0
@peak = global i64 0
@lists = global [{CLASSES} x ptr] zeroinitializer, align 64
@lock = global i64 0, align 64
@tiny = global [{TINY // STEP} x ptr] zeroinitializer, align 64
@tiny_count = global [{TINY // STEP} x i64] zeroinitializer, align 64
declare ptr @malloc(i64)
declare ptr @calloc(i64, i64)
declare void @free(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @llvm.ctlz.i64(i64, i1)

; The size class of a size: four times its power of two plus its next two bits.
define internal i64 @class_of(i64 %size) alwaysinline {{
  %less = sub i64 %size, 1
  %zeros = call i64 @llvm.ctlz.i64(i64 %less, i1 false)
  %power = sub i64 63, %zeros
  %shift = sub i64 %power, 2
  %top = lshr i64 %less, %shift
  %step = and i64 %top, 3
  %four = shl i64 %power, 2
  %class = add i64 %four, %step
  ret i64 %class
}}
; The largest size of a class.
define internal i64 @size_of(i64 %class) alwaysinline {{
  %power = lshr i64 %class, 2
  %step = and i64 %class, 3
  %shift = sub i64 %power, 2
  %steps = add i64 %step, 5
  %size = shl i64 %steps, %shift
  ret i64 %size
}}
define internal void @acquire() alwaysinline {{
entry:
  br label %try
try:
  %pair = cmpxchg ptr @lock, i64 0, i64 1 seq_cst seq_cst
  %got = extractvalue {{i64, i1}} %pair, 1
  br i1 %got, label %done, label %try
done:
  ret void
}}
define internal void @let_go() alwaysinline {{
  store atomic i64 0, ptr @lock release, align 8
  ret void
}}
; A block from the C library, moved to a boundary, with its header filled in.
define internal ptr @fresh(i64 %class, i64 %size, i1 %clear) {{
entry:
  %whole = add i64 %size, 128
  br i1 %clear, label %zeroed, label %plain
zeroed:
  %z = call ptr @calloc(i64 %whole, i64 1)
  br label %made
plain:
  %p = call ptr @malloc(i64 %whole)
  ADVICE
  br label %made
made:
  %base = phi ptr [%z, %zeroed], [%p, %plain]
  %none = icmp eq ptr %base, null
  br i1 %none, label %fail, label %good
fail:
  ret ptr null
good:
  %number = ptrtoint ptr %base to i64
  %far = add i64 %number, 127
  %aligned = and i64 %far, -64
  %block = inttoptr i64 %aligned to ptr
  %b = getelementptr i64, ptr %block, i64 -3
  store ptr %base, ptr %b
  %c = getelementptr i64, ptr %block, i64 -2
  store i64 %class, ptr %c
  %s = getelementptr i64, ptr %block, i64 -1
  store i64 %size, ptr %s
  ret ptr %block
}}
; A block of less than {LEAST} bytes: class -1, or -2 - k from list k.
define internal ptr @small(i64 %size, i1 %clear) alwaysinline {{
entry:
  %short = icmp ule i64 %size, {TINY - STEP}
  br i1 %short, label %look, label %new
look:
  %up = add i64 %size, {STEP - 1}
  %k = lshr i64 %up, {STEP.bit_length() - 1}
  %list = getelementptr ptr, ptr @tiny, i64 %k
  %first = load ptr, ptr %list
  %empty = icmp eq ptr %first, null
  br i1 %empty, label %tagged, label %take
tagged:
  %tag = sub i64 -2, %k
  %rounded = shl i64 %k, {STEP.bit_length() - 1}
  br label %new
take:
  %next = load ptr, ptr %first
  store ptr %next, ptr %list
  %n = getelementptr i64, ptr @tiny_count, i64 %k
  %have = load i64, ptr %n
  %less = sub i64 %have, 1
  store i64 %less, ptr %n
  br i1 %clear, label %wipe, label %done
wipe:
  %bytes = shl i64 %k, {STEP.bit_length() - 1}
  call void @llvm.memset.p0.i64(ptr %first, i8 0, i64 %bytes, i1 false)
  br label %done
done:
  ret ptr %first
new:
  %class = phi i64 [-1, %entry], [%tag, %tagged]
  %room = phi i64 [%size, %entry], [%rounded, %tagged]
  %whole = add i64 %room, 16
  br i1 %clear, label %zeroed, label %plain
zeroed:
  %z = call ptr @calloc(i64 %whole, i64 1)
  br label %made
plain:
  %p = call ptr @malloc(i64 %whole)
  br label %made
made:
  %base = phi ptr [%z, %zeroed], [%p, %plain]
  %none = icmp eq ptr %base, null
  br i1 %none, label %fail, label %good
fail:
  ret ptr null
good:
  store i64 %class, ptr %base
  %s = getelementptr i64, ptr %base, i64 1
  store i64 %room, ptr %s
  %block = getelementptr i64, ptr %base, i64 2
  ret ptr %block
}}
define internal void @count(i64 %size) alwaysinline {{
  %old = atomicrmw add ptr @live, i64 %size monotonic
  %new = add i64 %old, %size
  %top = atomicrmw max ptr @peak, i64 %new monotonic
  ret void
}}
define ptr @pullback_malloc(ptr %context, i64 %size) {{
entry:
  %small = icmp ult i64 %size, {LEAST}
  br i1 %small, label %little, label %large
little:
  %l = call ptr @small(i64 %size, i1 false)
  ret ptr %l
large:
  %class = call i64 @class_of(i64 %size)
  %last = add i64 %class, {STRETCH}
  call void @acquire()
  br label %look
look:
  %c = phi i64 [%class, %large], [%up, %next]
  %list = getelementptr ptr, ptr @lists, i64 %c
  %first = load ptr, ptr %list
  %empty = icmp eq ptr %first, null
  br i1 %empty, label %next, label %hit
next:
  %up = add i64 %c, 1
  %more = icmp sle i64 %up, %last
  br i1 %more, label %look, label %miss
hit:
  %after = load ptr, ptr %first
  store ptr %after, ptr %list
  %found = call i64 @size_of(i64 %c)
  %k = load i64, ptr @kept
  %k1 = sub i64 %k, %found
  store i64 %k1, ptr @kept
  %h = load i64, ptr @hits
  %h1 = add i64 %h, 1
  store i64 %h1, ptr @hits
  call void @let_go()
  call void @count(i64 %found)
  ret ptr %first
miss:
  %m = load i64, ptr @misses
  %m1 = add i64 %m, 1
  store i64 %m1, ptr @misses
  call void @let_go()
  %rounded = call i64 @size_of(i64 %class)
  call void @count(i64 %rounded)
  %f = call ptr @fresh(i64 %class, i64 %rounded, i1 false)
  ret ptr %f
}}
; Zeroed memory comes from the system, which hands out clear pages only when they are touched.
define ptr @pullback_calloc(ptr %context, i64 %count, i64 %each) {{
entry:
  %size = mul i64 %count, %each
  %small = icmp ult i64 %size, {LEAST}
  br i1 %small, label %little, label %large
little:
  %l = call ptr @small(i64 %size, i1 true)
  ret ptr %l
large:
  %class = call i64 @class_of(i64 %size)
  %rounded = call i64 @size_of(i64 %class)
  call void @count(i64 %rounded)
  %f = call ptr @fresh(i64 %class, i64 %rounded, i1 true)
  ret ptr %f
}}
define void @pullback_free(ptr %context, ptr %block, i64 %size) {{
entry:
  %none = icmp eq ptr %block, null
  br i1 %none, label %done, label %look
look:
  %c = getelementptr i64, ptr %block, i64 -2
  %class = load i64, ptr %c
  %little = icmp slt i64 %class, 0
  br i1 %little, label %small, label %large
small:
  %alone = icmp eq i64 %class, -1
  br i1 %alone, label %direct, label %listed
listed:
  %k = sub i64 -2, %class
  %number = getelementptr i64, ptr @tiny_count, i64 %k
  %n = load i64, ptr %number
  %many = icmp uge i64 %n, {MOST_TINY}
  br i1 %many, label %direct, label %back
back:
  %n1 = add i64 %n, 1
  store i64 %n1, ptr %number
  %chain = getelementptr ptr, ptr @tiny, i64 %k
  %top = load ptr, ptr %chain
  store ptr %top, ptr %block
  store ptr %block, ptr %chain
  ret void
direct:
  call void @free(ptr %c)
  ret void
large:
  %b = getelementptr i64, ptr %block, i64 -3
  %base = load ptr, ptr %b
  %s = getelementptr i64, ptr %block, i64 -1
  %rounded = load i64, ptr %s
  %was = atomicrmw sub ptr @live, i64 %rounded monotonic
  call void @acquire()
  %held = load i64, ptr @kept
  %would = add i64 %held, %rounded
  %most = load i64, ptr @limit
  %over = icmp ugt i64 %would, %most
  br i1 %over, label %full, label %keep
keep:
  store i64 %would, ptr @kept
  %list = getelementptr ptr, ptr @lists, i64 %class
  %first = load ptr, ptr %list
  store ptr %first, ptr %block
  store ptr %block, ptr %list
  call void @let_go()
  ret void
full:
  %r = load i64, ptr @returned
  %r1 = add i64 %r, %rounded
  store i64 %r1, ptr @returned
  call void @let_go()
  br label %give
give:
  call void @free(ptr %base)
  ret void
done:
  ret void
}}
define ptr @pullback_realloc(ptr %context, ptr %block, i64 %size) {{
entry:
  %new = call ptr @pullback_malloc(ptr %context, i64 %size)
  %failed = icmp eq ptr %new, null
  %none = icmp eq ptr %block, null
  %skip = or i1 %failed, %none
  br i1 %skip, label %done, label %copy
copy:
  %s = getelementptr i64, ptr %block, i64 -1
  %had = load i64, ptr %s
  %shorter = icmp ult i64 %had, %size
  %bytes = select i1 %shorter, i64 %had, i64 %size
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %block, i64 %bytes, i1 false)
  call void @pullback_free(ptr %context, ptr %block, i64 0)
  br label %done
done:
  ret ptr %new
}}
; Give all kept blocks back to the system.
define void @pullback_empty() {{
entry:
  call void @acquire()
  br label %head
head:
  %i = phi i64 [0, %entry], [%i1, %next]
  %more = icmp slt i64 %i, {CLASSES}
  br i1 %more, label %list, label %done
list:
  %l = getelementptr ptr, ptr @lists, i64 %i
  br label %pop
pop:
  %first = load ptr, ptr %l
  %empty = icmp eq ptr %first, null
  br i1 %empty, label %next, label %drop
drop:
  %after = load ptr, ptr %first
  store ptr %after, ptr %l
  %b = getelementptr i64, ptr %first, i64 -3
  %base = load ptr, ptr %b
  call void @free(ptr %base)
  br label %pop
next:
  %i1 = add i64 %i, 1
  br label %head
done:
  %k = load i64, ptr @kept
  %r = load i64, ptr @returned
  %r1 = add i64 %r, %k
  store i64 %r1, ptr @returned
  store i64 0, ptr @kept
  call void @let_go()
  ret void
}}
define ptr @pullback_counters(i64 %which) {{
  switch i64 %which, label %none [{" ".join(f"i64 {i}, label %c{i}" for i in range(len(COUNTERS)))}]
none:
  ret ptr null
{"".join(f"c{i}:{chr(10)}  ret ptr @{name}{chr(10)}" for i, name in enumerate(COUNTERS))}}}
"""


HUGE = """%n = ptrtoint ptr %p to i64
  %up = add i64 %n, 4095
  %page = and i64 %up, -4096
  %start = inttoptr i64 %page to ptr
  %big = icmp uge i64 %size, 4194304
  %length = select i1 %big, i64 %size, i64 0
  %told = call i32 @madvise(ptr %start, i64 %length, i32 14)"""
"""Ask Linux for pages of two megabytes under blocks of four and more, as NumPy's own allocator does."""


class Allocator(ctypes.Structure):
    """NumPy's PyDataMem_Handler."""

    _fields_ = [
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    ]


def source() -> str:
    """The module for this system."""
    linux = "linux" in target.TRIPLE
    return SOURCE.replace("ADVICE", HUGE if linux else "") + ("declare i32 @madvise(ptr, i64, i32)\n" if linux else "")


SET_HANDLER = 304
"""PyDataMem_SetHandler's place in NumPy's table of C functions."""


class Buffers:
    """The allocator of this process; made once and never taken down, since arrays it made may live to the end."""

    def __init__(self) -> None:
        functions = [f"pullback_{name}" for name in ("malloc", "calloc", "realloc", "free", "empty", "counters")]
        malloc, calloc, realloc, free, empty, counters = engine.load(source(), functions)
        where = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(counters)
        self.counters = {n: ctypes.c_int64.from_address(where(i)) for i, n in enumerate(COUNTERS)}
        self.empty = ctypes.CFUNCTYPE(None)(empty)
        self.handler = lasting(Allocator(b"pullback_allocator", 1, None, malloc, calloc, realloc, free))
        self.counters["limit"].value = memory_limit()
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        self.capsule = new(ctypes.addressof(self.handler), lasting(b"mem_handler"), None)
        if getattr(sys, "_is_gil_enabled", lambda: True)():  # which guards the lists of tiny blocks
            set_everywhere(self.install)

    def install(self) -> None:
        """Let NumPy take memory from here in this thread: where it keeps that is a context variable."""
        table = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        entries = ctypes.cast(pointer(table, None), ctypes.POINTER(ctypes.c_void_p))
        ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(entries[SET_HANDLER])(self.capsule)

    def stats(self) -> dict[str, int]:
        """Bytes in use and kept, and how often a block was found ready."""
        return {name: counter.value for name, counter in self.counters.items()}


def memory_limit() -> int:
    """How many bytes may be kept for later: $PULLBACK_MEMORY_KEPT, or an eighth of the machine's memory up to 2 GiB."""
    chosen = os.environ.get("PULLBACK_MEMORY_KEPT")
    if chosen is not None:
        return int(chosen)
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        total = 2**32
    return min(total // 8, 2**31)


buffers = Buffers()
