"""The CUDA device: NVIDIA's driver through ctypes, PTX through llvmlite, and an emulated device where there is no GPU.

driver.py ......... the driver: errors, memory, copies, streams, events, programs
emulated.py ....... the same interface on the host, for machines without a GPU: PULLBACK_CUDA=emulate
device.py ......... which of the two there is, and which device and stream are current
memory.py ......... the caching allocator
array.py .......... DeviceArray, the kind of array that lies there
carry.py .......... what has no kernel: operands to the host, results back, counted
kind.py ........... what the op machine asks of the kind
"""
