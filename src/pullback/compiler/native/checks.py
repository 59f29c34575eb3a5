"""Guards as native code: one builtin that goes through a table of objects, keys and the values they have.

It compares addresses and lengths. What is equal but another object is none of its business: where it says no, the guard
of Python is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from pullback._runtime.builtins import builtin
from pullback.compiler.guards import MISSING, Note, guard_of
from pullback.kernels.jit.compiler import engine
from pullback.kernels.jit.runtime import threads
from pullback.kernels.jit.runtime.calls import DATA, DIMS, HEAD

KEY, ATTRIBUTE, TYPE, DICT_LENGTH, LIST_LENGTH, SET_LENGTH, ITEM, CELL, NAMES = range(9)
FEW = 8
"""Notes that Python tests as quickly."""

SOURCE = f"""
@object_Py_True = external global i8
@object_Py_False = external global i8
declare ptr @PyDict_GetItemWithError(ptr, ptr)
declare ptr @PyObject_GetAttr(ptr, ptr)
declare ptr @PyList_GetItem(ptr, i64)
declare ptr @PyTuple_GetItem(ptr, i64)
declare ptr @PyCell_Get(ptr)
declare i64 @PyDict_Size(ptr)
declare i64 @PyList_Size(ptr)
declare i64 @PySet_Size(ptr)
declare i64 @PyTuple_Size(ptr)
declare i32 @PyDict_Next(ptr, ptr, ptr, ptr)
declare void @PyErr_Clear()
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)

define ptr @pullback_guard_call(ptr %self, ptr %argv, i64 %argc) {{
entry:
  %position = alloca i64
  %name = alloca ptr
  %array = load ptr, ptr %argv
  %where = getelementptr i8, ptr %array, i64 {DATA}
  %table = load ptr, ptr %where
  %sizes = getelementptr i8, ptr %array, i64 {DIMS}
  %size = load ptr, ptr %sizes
  %count = load i64, ptr %size
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %holds]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %yes
body:
  %row = getelementptr [4 x i64], ptr %table, i64 %i
  %kind = load i64, ptr %row
  %owner_at = getelementptr i64, ptr %row, i64 1
  %owner = load ptr, ptr %owner_at
  %key_at = getelementptr i64, ptr %row, i64 2
  %key = load ptr, ptr %key_at
  %number = load i64, ptr %key_at
  %value_at = getelementptr i64, ptr %row, i64 3
  %value = load ptr, ptr %value_at
  %length = load i64, ptr %value_at
  switch i64 %kind, label %no [
    i64 {KEY}, label %by_key
    i64 {ATTRIBUTE}, label %by_attribute
    i64 {TYPE}, label %by_type
    i64 {DICT_LENGTH}, label %of_dict
    i64 {LIST_LENGTH}, label %of_list
    i64 {SET_LENGTH}, label %of_set
    i64 {ITEM}, label %by_item
    i64 {CELL}, label %by_cell
    i64 {NAMES}, label %by_names
  ]
by_key:
  %k = call ptr @PyDict_GetItemWithError(ptr %owner, ptr %key)
  br label %borrowed
by_type:
  %t_at = getelementptr i8, ptr %owner, i64 {HEAD - 8}
  %t = load ptr, ptr %t_at
  br label %borrowed
by_item:
  %e = call ptr @PyList_GetItem(ptr %owner, i64 %number)
  br label %borrowed
borrowed:
  %b = phi ptr [%k, %by_key], [%t, %by_type], [%e, %by_item]
  %is = icmp eq ptr %b, %value
  br i1 %is, label %holds, label %no
by_attribute:
  %a = call ptr @PyObject_GetAttr(ptr %owner, ptr %key)
  br label %taken
by_cell:
  %c = call ptr @PyCell_Get(ptr %owner)
  br label %taken
taken:
  %n = phi ptr [%a, %by_attribute], [%c, %by_cell]
  %none = icmp eq ptr %n, null
  br i1 %none, label %no, label %some
some:
  call void @Py_DecRef(ptr %n)
  %same = icmp eq ptr %n, %value
  br i1 %same, label %holds, label %no
of_dict:
  %d = call i64 @PyDict_Size(ptr %owner)
  br label %sized
of_list:
  %l = call i64 @PyList_Size(ptr %owner)
  br label %sized
of_set:
  %s = call i64 @PySet_Size(ptr %owner)
  br label %sized
sized:
  %z = phi i64 [%d, %of_dict], [%l, %of_list], [%s, %of_set]
  %fits = icmp eq i64 %z, %length
  br i1 %fits, label %holds, label %no
by_names:
  store i64 0, ptr %position
  %have = call i64 @PyDict_Size(ptr %owner)
  %want = call i64 @PyTuple_Size(ptr %value)
  %as_many = icmp eq i64 %have, %want
  br i1 %as_many, label %names, label %no
names:
  %j = phi i64 [0, %by_names], [%j1, %right]
  %there = call i32 @PyDict_Next(ptr %owner, ptr %position, ptr %name, ptr null)
  %over = icmp eq i32 %there, 0
  br i1 %over, label %holds, label %compare
compare:
  %now = load ptr, ptr %name
  %then = call ptr @PyTuple_GetItem(ptr %value, i64 %j)
  %j1 = add i64 %j, 1
  %equal = icmp eq ptr %now, %then
  br i1 %equal, label %right, label %no
right:
  br label %names
holds:
  %next = add i64 %i, 1
  br label %head
no:
  call void @PyErr_Clear()
  call void @Py_IncRef(ptr @object_Py_False)
  ret ptr @object_Py_False
yes:
  call void @Py_IncRef(ptr @object_Py_True)
  ret ptr @object_Py_True
}}
"""


@cache
def check() -> Callable[[Any], bool]:
    """The builtin."""
    threads.start()
    (address,) = engine.load(SOURCE, ["pullback_guard_call"])
    return builtin(address, "guard")


def row_of(note: Note) -> tuple[int, int, int, int] | None:
    """The row of a note; None for one that Python tests."""
    owner, key, kind = note.owner, note.key, type(note.owner)
    value = 0 if note.value is MISSING else id(note.value)
    if note.getter == "key" and kind is dict and type(key) is str:
        return KEY, id(owner), id(key), value
    if note.getter == "attribute" and type(key) is str and value:
        return ATTRIBUTE, id(owner), id(key), value
    if note.getter == "type":
        return TYPE, id(owner), 0, value
    if note.getter == "index" and kind is list and type(key) is int and key >= 0:
        return ITEM, id(owner), key, value
    if note.getter == "cell" and value:
        return CELL, id(owner), 0, value
    if note.getter == "length" and kind in (dict, list):
        return DICT_LENGTH if kind is dict else LIST_LENGTH, id(owner), 0, note.value
    if note.getter == "keys" and kind is dict and type(note.value) is tuple:
        return NAMES, id(owner), 0, value
    if note.getter == "keys" and kind is set and note.value == ():
        return SET_LENGTH, id(owner), 0, 0
    return None


def native_guard(notes: list[Note]) -> Callable[[], bool]:
    """The guard of some notes."""
    rows: dict[tuple[Any, ...], None] = {}
    rest = []
    for note in notes:
        row = row_of(note)
        if row is None:
            rest.append(note)
        else:
            rows[row] = None
    if len(rows) < FEW:
        return guard_of(notes)
    table = np.array(list(rows), np.int64)
    quick, others = check(), guard_of(rest)
    by_python = cache(lambda: guard_of(notes))  # which takes what is equal for the same

    def holds() -> bool:
        return quick(table) or by_python()()

    def all_hold() -> bool:
        return (quick(table) and others()) or by_python()()

    return all_hold if rest else holds
