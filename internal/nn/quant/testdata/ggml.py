"""Writes ggml.json: what ggml's own Python package makes of numbers.  Run: pip install gguf==0.19.0 && python3 ggml.py ggml.json

Formats that the package can write get the weights that stand in the file; of the others it reads blocks: those that stand in the
file, or random ones whose scales are half precision numbers of ordinary size.
"""
import base64
import json
import sys

import numpy as np
from gguf import GGMLQuantizationType, quants

# Where blocks that the package cannot write have half precision numbers.
HALVES = {"Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "Q3_K": (108,), "IQ4_NL": (0,)}
WRITTEN = "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"


def text(array):
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()


path = sys.argv[1]
with open(path, encoding="utf-8") as f:
    before = {g["type"]: {k: np.frombuffer(base64.b64decode(v), np.uint8) for k, v in g.items() if k != "type"} for g in json.load(f)}
random, goldens = np.random.default_rng(5), []
for name in (*WRITTEN, *HALVES):
    kind, golden = GGMLQuantizationType[name], {"type": name}
    if name in WRITTEN:
        weights = before["Q8_0"]["weights"].view(np.float32)
        packed = quants.quantize(weights, kind).view(np.uint8)
        golden["weights"] = text(weights)
    elif name in before:
        packed = before[name]["packed"]
    else:
        packed = random.integers(0, 256, (4, quants.GGML_QUANT_SIZES[kind][1]), np.uint8)
        for at in HALVES[name]:
            packed[:, at : at + 2] = random.uniform(1e-3, 0.1, (4, 1)).astype(np.float16).view(np.uint8)
        packed = packed.reshape(-1)
    golden["packed"] = text(packed)
    golden["unpacked"] = text(quants.dequantize(packed, kind).astype(np.float32))
    goldens.append(golden)
with open(path, "w", encoding="utf-8") as f:
    json.dump(goldens, f, indent=0)
    f.write("\n")
