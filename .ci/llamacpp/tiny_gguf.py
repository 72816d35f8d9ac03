#!/usr/bin/env python3
"""Writes a tiny model for llama.cpp: random weights, a byte-level vocabulary, a chat template. Always the same bytes.

usage: tiny_gguf.py OUT.gguf [WINDOW]

With a WINDOW it is built like Gemma 3: five of its six layers attend to the last WINDOW tokens only. What it says is noise; tokens, slots and cache hits are those of a real model. Needs the standard library only.
"""
import array
import random
import struct
import sys

HIDDEN, HEADS, KV_HEADS, FORWARD, CONTEXT = 64, 2, 1, 128, 32768
LAYERS, WINDOW_LAYERS = 2, 6
SPECIAL = ["<s>", "</s>", "<|system|>", "<|user|>", "<|assistant|>"]
SYLLABLES = "ba ce di fo gu ha je ki lo mu na pe ri so tu ve wi xo yu za".split()
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{{ '<|' + m['role'] + '|>\n' + m['content'] + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"
)
UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9  # value types of the format
NORMAL, CONTROL = 1, 3  # token types
ALIGNMENT = 32


def byte_letters():
    """The letters that stand for the 256 bytes in byte-level vocabularies: printable bytes for themselves."""
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters, further = {b: chr(b) for b in own}, 0x100
    for b in range(256):
        if b not in letters:
            letters[b] = chr(further)
            further += 1
    return letters


def vocabulary():
    """Tokens and merges: bytes, syllables, syllables after a space, and words of two syllables."""
    letters = byte_letters()
    tokens, merges = SPECIAL + [letters[b] for b in range(256)], []

    def merge(left, right):
        merges.append(left + " " + right)
        tokens.append(left + right)

    space = letters[0x20]
    for s in SYLLABLES:
        merge(s[0], s[1])
    for s in SYLLABLES:
        merge(space, s)
    for first in SYLLABLES:
        for second in SYLLABLES[::2]:
            merge(space + first, second)
    return tokens, merges


def tensors(tokens, window):
    """Names, shapes (innermost first) and values."""
    draw = random.Random(1)

    def matrix(name, columns, rows, zero=()):
        scale = columns**-0.5
        values = array.array("f")
        for row in range(rows):
            values.extend([0.0] * columns if row in zero else [draw.gauss(0, scale) for _ in range(columns)])
        return name, (columns, rows), values

    def ones(name, n=HIDDEN):
        return name, (n,), array.array("f", [1.0] * n)

    letters = byte_letters()
    ascii_letters = {letters[b] for b in range(0x20, 0x7F)}
    # An answer is ASCII text: parts of characters, control characters and the roles' tokens always lose.
    mute = {
        i for i, t in enumerate(tokens)
        if i < len(SPECIAL) and t != "</s>" or len(SPECIAL) <= i < len(SPECIAL) + 256 and t not in ascii_letters
    }
    narrow = HIDDEN // HEADS * KV_HEADS
    yield matrix("token_embd.weight", HIDDEN, len(tokens))
    for i in range(WINDOW_LAYERS if window else LAYERS):
        if window:
            yield ones(f"blk.{i}.post_attention_norm.weight")
            yield ones(f"blk.{i}.post_ffw_norm.weight")
            yield ones(f"blk.{i}.attn_q_norm.weight", HIDDEN // HEADS)
            yield ones(f"blk.{i}.attn_k_norm.weight", HIDDEN // HEADS)
        yield ones(f"blk.{i}.attn_norm.weight")
        yield matrix(f"blk.{i}.attn_q.weight", HIDDEN, HIDDEN)
        yield matrix(f"blk.{i}.attn_k.weight", HIDDEN, narrow)
        yield matrix(f"blk.{i}.attn_v.weight", HIDDEN, narrow)
        yield matrix(f"blk.{i}.attn_output.weight", HIDDEN, HIDDEN)
        yield ones(f"blk.{i}.ffn_norm.weight")
        yield matrix(f"blk.{i}.ffn_gate.weight", HIDDEN, FORWARD)
        yield matrix(f"blk.{i}.ffn_up.weight", HIDDEN, FORWARD)
        yield matrix(f"blk.{i}.ffn_down.weight", FORWARD, HIDDEN)
    yield ones("output_norm.weight")
    yield matrix("output.weight", HIDDEN, len(tokens), mute)


def text(s):
    raw = s.encode()
    return struct.pack("<Q", len(raw)) + raw


def value(kind, v):
    if kind == STRING:
        return text(v)
    return struct.pack({UINT32: "<I", INT32: "<i", FLOAT32: "<f", BOOL: "<?"}[kind], v)


def entry(key, kind, v):
    if isinstance(v, list):
        return text(key) + struct.pack("<IIQ", ARRAY, kind, len(v)) + b"".join(value(kind, x) for x in v)
    return text(key) + struct.pack("<I", kind) + value(kind, v)


def main(out, window=0):
    tokens, merges = vocabulary()
    kind = "gemma3" if window else "llama"
    entries = [
        entry("general.architecture", STRING, kind),
        entry("general.name", STRING, "tiny"),
        entry("general.alignment", UINT32, ALIGNMENT),
        entry("general.file_type", UINT32, 0),
        entry(f"{kind}.context_length", UINT32, CONTEXT),
        entry(f"{kind}.embedding_length", UINT32, HIDDEN),
        entry(f"{kind}.block_count", UINT32, WINDOW_LAYERS if window else LAYERS),
        entry(f"{kind}.feed_forward_length", UINT32, FORWARD),
        entry(f"{kind}.attention.head_count", UINT32, HEADS),
        entry(f"{kind}.attention.head_count_kv", UINT32, KV_HEADS),
        entry(f"{kind}.attention.layer_norm_rms_epsilon", FLOAT32, 1e-5),
        entry(f"{kind}.rope.dimension_count", UINT32, HIDDEN // HEADS),
        entry(f"{kind}.vocab_size", UINT32, len(tokens)),
        entry("tokenizer.ggml.model", STRING, "gpt2"),
        entry("tokenizer.ggml.pre", STRING, "gpt-2"),
        entry("tokenizer.ggml.tokens", STRING, tokens),
        entry("tokenizer.ggml.token_type", INT32, [CONTROL if i < len(SPECIAL) else NORMAL for i in range(len(tokens))]),
        entry("tokenizer.ggml.merges", STRING, merges),
        entry("tokenizer.ggml.bos_token_id", UINT32, 0),
        entry("tokenizer.ggml.eos_token_id", UINT32, 1),
        entry("tokenizer.ggml.add_bos_token", BOOL, False),
        entry("tokenizer.chat_template", STRING, TEMPLATE),
    ]
    if window:
        entries.append(entry("gemma3.attention.sliding_window", UINT32, window))
    infos, data = [], bytearray()
    for name, shape, values in tensors(tokens, window):
        infos.append(text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, len(data)))
        if sys.byteorder == "big":
            values.byteswap()
        data += values.tobytes()
        data += bytes(-len(data) % ALIGNMENT)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(entries)) + b"".join(entries) + b"".join(infos)
    with open(out, "wb") as f:
        f.write(head + bytes(-len(head) % ALIGNMENT) + data)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
