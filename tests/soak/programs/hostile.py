"""Load damaged and forged files: hostile.py SEED HOW MANY."""

import io
import os
import pickle
import random
import sys
import tempfile
import warnings

import pullback as torch
from pullback.serialization import safetensors
from tests.soak.children import limit_memory

moment, COUNT = random.Random(int(sys.argv[1])), int(sys.argv[2])
warnings.simplefilter("ignore")
CLEAN = (
    RuntimeError,
    pickle.UnpicklingError,
    EOFError,
    NotImplementedError,
    ValueError,
    OSError,
    safetensors.SafetensorError,
)
LIMIT = 512 * 2**20

net = torch.nn.Linear(5, 3)
tensors = {"a": torch.arange(12.0).view(3, 4), "b": torch.ones(2, dtype=torch.int64), "c": torch.zeros(())}
folder = tempfile.mkdtemp()


def saved(obj, **options):
    file = io.BytesIO()
    torch.save(obj, file, **options)
    return file.getvalue()


def saved_safetensors():
    path = os.path.join(folder, "whole.safetensors")
    safetensors.save_file(tensors, path)
    with open(path, "rb") as file:
        return file.read()


GOOD = [saved(net.state_dict()), saved(tensors), saved(tensors, _use_new_zipfile_serialization=False)]
GOOD_SAFE = [saved_safetensors()]


def damaged(data):
    """A file with something wrong."""
    data = bytearray(data)
    way = moment.randrange(6)
    if way == 0:
        for _ in range(moment.randrange(1, 9)):
            data[moment.randrange(len(data))] ^= 1 << moment.randrange(8)
    elif way == 1:
        del data[moment.randrange(len(data)) :]
    elif way == 2:
        at = moment.randrange(len(data))
        data[at:at] = moment.randbytes(moment.randrange(1, 50))
    elif way == 3:
        at = moment.randrange(len(data))
        del data[at : at + moment.randrange(1, 50)]
    elif way == 4:  # a size that is not true
        at = moment.randrange(max(1, len(data) - 8))
        data[at : at + 8] = moment.choice((2**63 - 1, 2**40, 2**32 - 1, 0)).to_bytes(8, "little")
    else:
        a, b = sorted(moment.randrange(len(data)) for _ in range(2))
        data[a:b] = moment.randbytes(b - a)
    return bytes(data)


forbidden = []
watching = False


def audit(event, arguments):
    """What no file may make happen."""
    if watching and event in ("os.system", "subprocess.Popen", "os.exec", "os.remove", "socket.connect", "os.fork"):
        forbidden.append(event)


sys.addaudithook(audit)
limit_memory(LIMIT)
for nr in range(COUNT):
    safe = moment.random() < 0.3
    data = damaged(moment.choice(GOOD_SAFE if safe else GOOD))
    path = os.path.join(folder, "file")
    with open(path, "wb") as file:
        file.write(data)
    watching = True
    try:
        if safe:
            safetensors.load_file(path)
        else:
            torch.load(path if moment.random() < 0.5 else io.BytesIO(data), mmap=False)
    except CLEAN:
        pass
    except BaseException as error:
        with open(os.path.join(tempfile.gettempdir(), "hostile_file"), "wb") as file:
            file.write(data)
        print(f"file {nr}: {type(error).__name__}: {error}")
        sys.exit(1)
    finally:
        watching = False
    if forbidden:
        print(f"file {nr} made this happen: {forbidden}")
        sys.exit(1)
for name in os.listdir(folder):
    os.unlink(os.path.join(folder, name))
os.rmdir(folder)
print(COUNT)
