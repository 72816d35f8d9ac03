#!/usr/bin/env python3
"""Makes what the tests compare with: tokens by the reference tokenizer, vectors by NumPy in 64 bits.

    golden.py tiny                  writes tiny/: a random model of a few kilobytes, and golden.json for it
    golden.py golden MODEL FILE     writes FILE: texts, their tokens and their vectors by the model in the folder MODEL

It needs the packages numpy and tokenizers.
"""
import json
import math
import pathlib
import struct
import sys

import numpy as np
from tokenizers import Tokenizer

TEXTS = [
    "",
    "Ana plays the violin.",
    "The quick brown fox jumps, naïve café! 日本語 unaffordable",
    "Pumps move water from the cellar to the garden; valves stop it.",
    "ÅNGSTRÖM, İstanbul and ﬁne ligatures: Ωmega\u0301 ½ ™ №7",
    "a\u0000b\u200bc\u00ad\ufffd d\u2003e\tf\r\ng\u3000h",
    "don't re-use _snake_case_ or $100.50 (50%) <tags> `code` ~ ^ |",
    "before [SEP] between [MASK] [sep] [[PAD]] after",
    "y" * 101 + " and " + "x" * 100,
    "한국어 조선 ひらがな カタカナ 漢字かな交じり文 ελληνικά русский עברית हिन्दी",
    "🙂 emoji 👩‍🚀 and \u0301 a lone accent, e\u0301 as two, \u037e a Greek question mark",
    "The harbour was quiet, and the crew slept until noon. " * 40,
]


def tensors(path):
    raw = path.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    out = {}
    for name, t in json.loads(raw[8 : 8 + size]).items():
        if name == "__metadata__" or t["dtype"] != "F32":
            continue
        begin, end = t["data_offsets"]
        out[name] = np.frombuffer(raw[8 + size + begin : 8 + size + end], "<f4").reshape(t["shape"]).astype(np.float64)
    return out


erf = np.vectorize(math.erf, otypes=[np.float64])


def vector(w, config, ids):
    def linear(x, name):
        return x @ w[name + ".weight"].T + w[name + ".bias"]

    def norm(x, name):
        d = x - x.mean(-1, keepdims=True)
        return d / np.sqrt((d * d).mean(-1, keepdims=True) + config["layer_norm_eps"]) * w[name + ".weight"] + w[name + ".bias"]

    x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][: len(ids)]
    x = norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    heads = config["num_attention_heads"]
    for i in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{i}."
        q, k, v = (
            linear(x, layer + "attention.self." + part).reshape(len(ids), heads, -1).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (scores / scores.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(len(ids), -1)
        x = norm(x + linear(mixed, layer + "attention.output.dense"), layer + "attention.output.LayerNorm")
        up = linear(x, layer + "intermediate.dense")
        up = up * 0.5 * (1 + erf(up / math.sqrt(2)))
        x = norm(x + linear(up, layer + "output.dense"), layer + "output.LayerNorm")
    x = x.mean(0)
    return x / np.linalg.norm(x)


def golden(model, path):
    config = json.loads((model / "config.json").read_text())
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(min(256, config["max_position_embeddings"]))
    w = tensors(model / "model.safetensors")
    out = []
    for text in TEXTS:
        ids = tokenizer.encode(text).ids
        out.append({"text": text, "tokens": ids, "vector": [float(f"{x:.8f}") for x in vector(w, config, ids)]})
    path.write_text("[\n" + ",\n".join(json.dumps(o) for o in out) + "\n]\n")


def tiny(folder):
    folder.mkdir(exist_ok=True)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "ana", "play", "##s", "violin", "quick", "fox", "jump", "naive", "cafe"]
    pieces += ["un", "##aff", "##ord", "##able", "water", "##er", "harbour", "crew", "日", "##nt", "don"]
    pieces += [chr(c) for c in range(ord("!"), 0x7F) if not chr(c).isupper()] + ["##" + chr(c) for c in range(ord("a"), ord("z") + 1)]
    vocabulary = {p: i for i, p in enumerate(dict.fromkeys(pieces))}
    added = [
        {"id": i, "content": p, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
        for i, p in enumerate(pieces[:5])
    ]
    single = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}]
    special = {p: {"id": p, "ids": [vocabulary[p]], "tokens": [p]} for p in ("[CLS]", "[SEP]")}
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing", "single": single, "pair": single + [{"Sequence": {"id": "B", "type_id": 1}}], "special_tokens": special},
        "decoder": None,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": vocabulary},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False))
    hidden, wide, layers, positions = 12, 20, 2, 48
    config = {
        "model_type": "bert", "hidden_act": "gelu", "hidden_size": hidden, "intermediate_size": wide, "num_attention_heads": 3,
        "num_hidden_layers": layers, "max_position_embeddings": positions, "type_vocab_size": 2, "vocab_size": len(vocabulary), "layer_norm_eps": 1e-12,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    shapes = {"embeddings.word_embeddings.weight": (len(vocabulary), hidden), "embeddings.position_embeddings.weight": (positions, hidden)}
    shapes["embeddings.token_type_embeddings.weight"] = (2, hidden)

    def linear(name, n, k):
        shapes[name + ".weight"], shapes[name + ".bias"] = (n, k), (n,)

    def norm(name):
        shapes[name + ".weight"] = shapes[name + ".bias"] = (hidden,)

    norm("embeddings.LayerNorm")
    for i in range(layers):
        layer = f"encoder.layer.{i}."
        for part in ("query", "key", "value"):
            linear(layer + "attention.self." + part, hidden, hidden)
        linear(layer + "attention.output.dense", hidden, hidden)
        norm(layer + "attention.output.LayerNorm")
        linear(layer + "intermediate.dense", wide, hidden)
        linear(layer + "output.dense", hidden, wide)
        norm(layer + "output.LayerNorm")
    random = np.random.default_rng(1)
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, shape in shapes.items():
        numbers = random.normal(1 if "LayerNorm.weight" in name else 0, 0.5, shape).astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [len(data), len(data) + len(numbers)]}
        data += numbers
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    golden(folder, folder / "golden.json")


here = pathlib.Path(__file__).parent
if sys.argv[1:] == ["tiny"]:
    tiny(here / "tiny")
elif len(sys.argv) == 4 and sys.argv[1] == "golden":
    golden(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
else:
    sys.exit(__doc__)
