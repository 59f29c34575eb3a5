"""Save where there is no room: disk.py limit BYTES | device FILE | folder FOLDER."""

import os
import resource
import signal
import sys
import tempfile

import pullback as torch

way, where = sys.argv[1], sys.argv[2]
large = {"values": torch.zeros(500_000)}
if way == "device":
    try:
        torch.save(large, where)
        sys.exit("a full device took a file")
    except (OSError, RuntimeError):
        print(1)
        sys.exit(0)
folder = tempfile.mkdtemp(dir=where if way == "folder" else None)
file = os.path.join(folder, "model.pt")
torch.save({"values": torch.arange(5)}, file)
if way == "limit":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(where), int(where)))
try:
    torch.save(large, file)
    sys.exit("a file was saved where there is no room for it")
except (OSError, RuntimeError):
    pass
try:
    assert torch.load(file)["values"].tolist() == [0, 1, 2, 3, 4], "the old file is not what it was"
    assert os.listdir(folder) == ["model.pt"], f"left behind: {os.listdir(folder)}"
finally:
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    os.rmdir(folder)
print(1)
