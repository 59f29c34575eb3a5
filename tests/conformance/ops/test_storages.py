"""Storages made by hand: what constructors take, what can be read and written, and what is refused."""

import copy
import warnings

import pytest
import torch as peer

import pullback

BYTES = "torch.UntypedStorage([1, 2, 3, 255])"
ELEMENTS = "torch.TypedStorage([1, 2.5, 3], dtype=torch.float32)"
PROGRAMS = [
    *[
        f"torch.{kind}Storage{what}"
        for kind in ("Float", "Long", "Half", "BFloat16", "Bool", "ComplexDouble")
        for what in (
            "().size()", "(3).nbytes()", "([1, 2])", "([1, 2]).type()", "(wrap_storage=torch.UntypedStorage(16)).dtype",
            "(3, dtype=torch.int8)", "(1, 2)", ".dtype", ".__name__", ".__module__",
            "([1, 2]).double()", "(2).get_device()", "(2).resizable()", "(2).is_shared()",
            "(2).share_memory_().is_shared()",
            "(2).filename", "(2).pin_memory()", "(2).hpu()", "([0, 1]).to(device='cpu')", "(2).is_hpu",
        )
    ],
    *[
        f"isinstance(torch.ones(2).storage(), torch.{kind})"
        for kind in ("FloatStorage", "LongStorage", "Storage", "TypedStorage", "UntypedStorage", "StorageBase")
    ],
    *[
        f"torch.FloatStorage.from_buffer({given})"
        for given in (
            "b'12345678', 'little'", "b'12345678', 'big'", "b'12345678', 'native'", "b'12345678'", "b'1234567', 'big'",
            "b'12345678', 'big', offset=4", "b'12345678', 'big', offset=9", "b'12345678', 'big', 2, 4",
            "b'12345678', 'big', count=1", "b'12345678', 'middle'",
        )
    ],
    "torch.ByteStorage.from_buffer(b'abc')",
    "torch.BoolStorage.from_buffer(b'a\\x00c')",
    "torch.TypedStorage.from_file('x', False, 2)",
    "torch.StorageBase()",
    "torch.UntypedStorage.from_buffer(b'abcd', dtype=torch.int16, byte_order='big').tolist()",
    "torch.UntypedStorage.from_buffer(b'abcd')",
    "isinstance(torch.ones(2).untyped_storage(), torch.StorageBase)",
    "torch.UntypedStorage(2).mps()",
    "torch.Storage is torch.FloatStorage",
    *[
        f"torch.UntypedStorage({given}).nbytes()"
        for given in (
            "", "0", "7", "[]", "[1, 2]", "(1, 2)", "b'ab'", "torch.tensor(3)", "3, device='cpu'", "size=3", "-1",
            "True", "1.5", "None", "1, 2", "'a'", "[1.5]", "['a']", "[True]", "2**62", "2**70",
        )
    ],
    "torch.UntypedStorage([1, 256, -1, -257]).tolist()",
    *[
        f"(lambda s: {what})({BYTES})"
        for what in (
            "len(s)", "s.size()", "s.element_size()", "repr(s)", "str(s)", "s[0]", "s[-1]", "s[4]", "s[-5]", "s['a']",
            "s[1.0]", "type(s[0]).__name__", "s[1:3].tolist()", "s[:].tolist()", "s[3:1].tolist()", "s[::2]",
            "(s[1:3].fill_(9), s.tolist())[1]", "list(s)", "2 in s", "s.fill_(3).tolist()", "s.fill_(300).tolist()",
            "s.fill_(-1).tolist()", "s.fill_(1.5)", "s.fill_('a')", "s.resize_(2).tolist()", "s.resize_(4) is s",
            "s.resize_(8).tolist()[:4]", "s.resize_(0).nbytes()", "s.resize_(-1)", "s.resize_('a')", "s.resize_(1.5)",
            "s.clone().tolist()", "s.clone().data_ptr() == s.data_ptr()", "torch.UntypedStorage(4).copy_(s).tolist()",
            "torch.UntypedStorage(3).copy_(s)", "(s == s, s == s.clone(), s != s)", "s.device", "s.is_cuda", "s.type()",
            "s.cpu() is s", "s.untyped() is s", "s.new().nbytes()", "repr(s.float())", "s.long().tolist()",
            "s.double().dtype", "s.byteswap(torch.int16)", "(s.byteswap(torch.int16), s.tolist())[1]", "s.is_pinned()",
            "copy.copy(s).data_ptr() == s.data_ptr()", "copy.deepcopy([s, s])[0].tolist()", "torch.is_storage(s)",
            "torch.empty(0, dtype=torch.uint8).set_(s).tolist()", "torch.empty(0, dtype=torch.int32).set_(s).shape",
        )
    ],
    *[
        f"(lambda s: (s.__setitem__({index}, {value}), s.tolist())[1])({BYTES})"
        for index, value in (
            (0, 9), (-1, 9), ("slice(1, 3)", 7), ("slice(None)", 5), (4, 1), (0, 256), (0, -1), (0, 1.5), (0, "'a'"),
            ("slice(0, 4, 2)", 1), ("'a'", 1),
        )
    ],
    "torch.empty(0).set_(torch.UntypedStorage(7)).shape",
    "(lambda x: (x.untyped_storage().__setitem__(3, 63), x.tolist())[1])(torch.arange(4.))",
    "(lambda x: (x.untyped_storage().fill_(0), x.tolist())[1])(torch.arange(4.))",
    *[
        f"(lambda s: {what})({ELEMENTS})"
        for what in (
            "len(s)", "s.size()", "s.nbytes()", "s.element_size()", "repr(s)", "s.tolist()", "s[1]", "s[-1]", "s[3]",
            "s[0:2]", "(s.__setitem__(0, 7), s.tolist())[1]", "(s.__setitem__(slice(1, 3), 5), s.tolist())[1]",
            "s.fill_(2).tolist()", "s.resize_(2)", "(s.resize_(2), s.tolist())[1]", "s.untyped().nbytes()", "s.type()",
            "s.pickle_storage_type()", "s.double().tolist()", "repr(s.long())", "s.clone().tolist()", "s.device",
            "s.dtype", "torch.TypedStorage(3, dtype=torch.float32).copy_(s).tolist()", "copy.deepcopy(s).tolist()",
        )
    ],
    "torch.TypedStorage(dtype=torch.float64).size()",
    "torch.TypedStorage(3).dtype",
    "torch.TypedStorage(3, dtype=torch.int64).nbytes()",
    "torch.TypedStorage(wrap_storage=torch.UntypedStorage(7), dtype=torch.float32).size()",
    "(lambda x: (x.storage().fill_(2), x.tolist())[1])(torch.arange(4.))",
]  # fmt: skip


def outcome(torch, program):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return repr(eval(program, {"torch": torch, "copy": copy})).replace("pullback", "torch")
        except Exception as error:
            return type(error).__name__, str(error).replace("pullback", "torch")


@pytest.mark.parametrize("program", PROGRAMS)
def test_storages_behave_as_torchs(program):
    assert outcome(pullback, program) == outcome(peer, program)


def test_memory_that_a_tensor_looks_at_is_not_resized():
    x = pullback.arange(4.0)
    assert x.untyped_storage().resize_(16).nbytes() == 16
    with pytest.raises(NotImplementedError, match=r"tensor\.resize_"):
        x.untyped_storage().resize_(0)
    own = pullback.UntypedStorage(16)
    pullback.empty(0).set_(own)
    with pytest.raises(NotImplementedError, match=r"tensor\.resize_"):
        own.resize_(8)
    assert x.tolist() == [0, 1, 2, 3]


def test_a_tensor_made_of_a_storage_looks_at_its_memory():
    """Files of weights are read so, and need not be copied byte by byte."""

    def program(torch):
        seen = []
        options = [{}, *[{"dtype": getattr(torch, name)} for name in ("uint8", "int8", "bool", "float32", "float64")]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for storage in (torch.UntypedStorage([1, 2, 3, 4]), torch.FloatStorage([1, 2, 3]), torch.UntypedStorage(0)):
                for make in (torch.asarray, torch.tensor, torch.as_tensor):
                    for option in options:
                        try:
                            out = make(storage, **option)
                            same = out.data_ptr() == storage.data_ptr()
                            seen.append((str(out.dtype), tuple(out.shape), out.tolist(), same))
                        except RuntimeError as error:
                            seen.append(str(error))
            bytes_ = torch.UntypedStorage([1, 2])
            torch.asarray(bytes_, dtype=torch.uint8)[0] = 9
            seen += [list(bytes_), torch.tensor([bytes_, bytes_]).tolist()]
        return seen

    assert program(pullback) == program(peer)
