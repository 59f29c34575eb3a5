"""The ops of pullback compared with torch's, op by op.

Torch gives some answers by the width of the CPU's vectors: the gradient of elu at NaN is NaN inside of a whole vector
and not in what is left over. So that the specification is the same on every machine, torch is asked for one width.
"""

import os

os.environ.setdefault("ATEN_CPU_CAPABILITY", "avx2")
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")
