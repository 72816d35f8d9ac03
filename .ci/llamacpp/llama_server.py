#!/usr/bin/env python3
"""llama-server from the package xllamacpp beside this file, which has llama.cpp's server as a library: its flags that the tests use, by their names and with their defaults."""
import argparse
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "package"))

import xllamacpp as llama  # noqa: E402

parser = argparse.ArgumentParser(allow_abbrev=False)
add = parser.add_argument
add("--version", action="version", version=llama.__version__)
add("-m", dest="model", required=True)
add("-t", dest="threads", type=int)
add("--host", default="127.0.0.1")
add("--port", type=int, default=8080)
add("--alias")
add("--api-key")
add("--slot-save-path")
add("--chat-template-file", type=argparse.FileType(encoding="utf-8"))
add("--pooling")
add("-fa", dest="flash_attention")
# Flags that say what a parameter is.
NUMBERS = {"-c": "n_ctx", "-b": "n_batch", "-ub": "n_ubatch", "--cache-ram": "cache_ram_mib", "--cache-reuse": "n_cache_reuse"}
SWITCHES = {
    "--metrics": ("endpoint_metrics", True),
    "--no-slots": ("endpoint_slots", False),
    "--jinja": ("use_jinja", True),
    "--no-jinja": ("use_jinja", False),
    "--no-cache-prompt": ("cache_prompt", False),
    "--embeddings": ("embedding", True),
    "--kv-unified": ("kv_unified", True),
    "--swa-full": ("swa_full", True),
}
TYPES = {"-ctk": "cache_type_k", "-ctv": "cache_type_v"}
add("--parallel", dest="n_parallel", type=int, default=-1)
add("--chat-template", dest="chat_template")
for flag, name in NUMBERS.items():
    add(flag, dest=name, type=int)
for flag, (name, value) in SWITCHES.items():
    add(flag, dest=name, action="store_const", const=value)
for flag, name in TYPES.items():
    add(flag, dest=name, type=lambda s: llama.ggml_type["GGML_TYPE_" + s.upper()])
args = parser.parse_args()

params = llama.CommonParams()
params.model.path, params.hostnames, params.port = args.model, [args.host], args.port
for name in ["n_parallel", "chat_template", *NUMBERS.values(), *(name for name, _ in SWITCHES.values()), *TYPES.values()]:
    value = getattr(args, name)
    if value is not None:
        setattr(params, name, value)
if args.threads is not None:
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = args.threads
if args.alias is not None:
    params.model_alias = {args.alias}
if args.api_key is not None:
    params.api_keys = [args.api_key]
if args.slot_save_path is not None:
    params.slot_save_path = os.path.join(args.slot_save_path, "")  # the library puts the name of a file right behind it
if args.chat_template_file is not None:
    params.chat_template = args.chat_template_file.read()
if args.pooling is not None:
    params.pooling_type = llama.llama_pooling_type["LLAMA_POOLING_TYPE_" + args.pooling.upper()]
if args.flash_attention is not None:
    kind = {"on": "ENABLED", "off": "DISABLED", "auto": "AUTO"}[args.flash_attention]
    params.flash_attn_type = llama.llama_flash_attn_type["LLAMA_FLASH_ATTN_TYPE_" + kind]

signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
server = llama.Server(params)
while True:
    signal.pause()
