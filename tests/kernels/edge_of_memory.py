"""Arrays that end where readable memory ends: a kernel that reads one element too far does not come back."""

import ctypes
import mmap

import numpy as np

PAGE = mmap.PAGESIZE
kept = []


def at_the_edge(array):
    """The array copied to the end of a page that is followed by one nobody may read."""
    size = -(-array.nbytes // PAGE) * PAGE
    memory = mmap.mmap(-1, size + PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    assert protect(ctypes.c_void_p(start + size), ctypes.c_size_t(PAGE), 0) == 0
    kept.append(memory)
    made = np.frombuffer(memory, array.dtype, array.size, size - array.nbytes).reshape(array.shape)
    made[...] = array
    return made
