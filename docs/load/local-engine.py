"""llama.cpp's speed on one thread, through llama-cpp-python: make SOURCE FORMAT FILE converts, run FILE flash|plain measures."""

import ctypes
import os
import sys
import time

import llama_cpp

PROMPTS = [int(n) for n in os.environ.get("PROMPTS", "512,2048,4096").split(",")]
ANSWER, RUNS = 64, int(os.environ.get("RUNS", "3"))
FORMATS = {"F32": 0, "F16": 1, "Q8_0": 7, "Q4_0": 2}


def convert(source, name, target):
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype, params.allow_requantize, params.nthread = FORMATS[name], True, 2
    if llama_cpp.llama_model_quantize(source.encode(), target.encode(), ctypes.byref(params)) != 0:
        sys.exit(f"cannot make {target}")


def measure(path, flash):
    longest = max(PROMPTS)
    model = llama_cpp.Llama(
        path, n_ctx=longest + ANSWER, n_threads=1, n_threads_batch=1, n_batch=512, n_ubatch=512, flash_attn=flash, verbose=False
    )
    words = model.tokenize(b"The harbour master counts the ships that came in over night, one by one. ", add_bos=False)
    for length in PROMPTS:
        prompt = [words[i % len(words)] for i in range(length)]
        prefill, decode = [], []
        for _ in range(RUNS):
            model.reset()
            start = time.perf_counter()
            model.eval(prompt)
            prefill.append(time.perf_counter() - start)
            start = time.perf_counter()
            for token in prompt[: ANSWER - 1]:
                model.eval([token])
            decode.append(time.perf_counter() - start)
        print(f"prefill of {length} tokens: {length / min(prefill):.1f} tokens/s")
        print(f"decode of {ANSWER} tokens behind them: {(ANSWER - 1) / min(decode):.1f} tokens/s")


if __name__ == "__main__":
    if sys.argv[1] == "make":
        convert(sys.argv[2], sys.argv[3], sys.argv[4])
    else:
        measure(sys.argv[2], sys.argv[3] == "flash")
