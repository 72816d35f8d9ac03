#!/usr/bin/env python3
"""Makes the vocabulary of SentencePiece and what llama.cpp makes of texts with it.

usage: make_sentencepiece.py train OUT.json TEXT...     needs the package sentencepiece (0.2.1)
       make_sentencepiece.py golden VOCABULARY.json     needs the package llama-cpp-python (0.3.36); writes to standard output

The vocabulary is learnt from texts and then has a few tokens more, for what learnt ones do not show.
"""
import base64
import ctypes
import json
import os
import struct
import sys
import tempfile

NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6  # token types of GGUF
UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9  # value types of GGUF

MORE = [
    # Two of the same score, of which the leftmost is merged first.
    ("qj", -0.5, NORMAL), ("jq", -0.5, NORMAL), ("jqj", -0.25, NORMAL), ("jv", -0.5, NORMAL), ("vj", -0.5, NORMAL),
    # Characters that are no tokens, but are merged into some.
    ("ⴰⴱ", -1.5, NORMAL), ("ⴰⴱⴲ", -1.75, NORMAL), ("eⴳ", -0.75, NORMAL),
    ("<note>", 0, USER), ("zqx", -0.1, UNUSED),
]

TEXTS = [
    "", "a", " ", "  ", "   ", "\n", "\n\n", "\t", "\r\n", "Hello, world!", " leading", "trailing ", "  both  ", "\tx\t", "\nx\n",
    "one  two   three    four", "a\tb\t\tc", "line one\nline two\n\nline four", "What is the capital of France?",
    "The engine keeps the keys and values of the prefix it has read, and the pilot keeps the order.",
    "It's, IT'S, we'll; they've 'd", "2024-11-25 17:08:00 +0000, 3.14159, 1,000,000", "x = y*(z+1); // done", "{\"key\": [1, 2, null]}",
    "# Heading\n\n- item one\n- item two\n\n```go\nfunc main() {}\n```\n", "| a | b |\n|---|---|\n", "https://example.com/a/b?c=d&e=%20f#g",
    "snake_case camelCase kebab-case SCREAMING_CASE", "éèêëàâîïôöûüç", "e\u0301 a\u0308 o\u0302", "naïve café", "Größe, Straße", "Привет, мир",
    "你好，世界", "今日は良い天気です。", "안녕하세요", "مرحبا بالعالم", "שלום", "สวัสดี", "नमस्ते", "😀", "👩‍👩‍👧‍👦 family", "a😀b 🇫🇷🇩🇪", "😀 😀", "\u200b\u200d\ufeff",
    "\u00a0no\u00a0break", "\u3000wide", "\u2028\u2029", "\x00", "a\x00b", "\x01\x1f\x7f", "\ufffd", "▁", "▁▁a▁b", " ▁ ", "<0x0A>", "<0x41><0x42>",
    "qjq", "jqjq", "qjqjqj", "xqjqjx", "vjv", "jvj", "vjvjvjvj", "ⴰⴱ", "ⴰⴱⴲ", "ⴰ", "ⴱⴰⴱⴲⴰ", "theⴳ eⴳe", "the" * 40, "a" * 300, "abcdefghijklmnopqrstuvwxyz" * 8, "=" * 77, " " * 50,
    "incomprehensibilities antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟙𝟚𝟛", "ﬁ ﬂ ½ ² ™", "…—–“”‘’", "a,b;c:d.e!f?g", "....", "!!??", "<s", "s>", "</", "<unk", "<|user|>\nhi\n<|assistant|>\n",
    "<s>", "</s>", "<s>a</s>", "a<s>b", "a <s> b", "</s></s>", "<unk>x", "x</s>\n", "<|user|>\nhi</s>\n<|assistant|>\n", "[INST] hi [/INST] there</s>[INST] x [/INST]",
    "[INST]hi[/INST]", "<s> a", "\n<s>\n", "</s",
]
RAW = [b"\xff", b"a\xffb", b"\xc3", b"\xe2\x82", b"\xe2\x82a", b"\xf0\x9f\x98", b"\xc0\x80", b"\xed\xa0\x80", b"ok \xf0\x28\x8c\xbc ok"]
USER_TEXTS = ["<note>", "x<note>y", " <note> ", "<note><s>", "the <note> and"]  # llama.cpp takes such names without special, too


def train(out, files):
    import sentencepiece

    with tempfile.TemporaryDirectory() as folder:
        prefix = os.path.join(folder, "m")
        sentencepiece.SentencePieceTrainer.train(
            input=files, model_prefix=prefix, model_type="bpe", vocab_size=2000, byte_fallback=True, character_coverage=0.9995,
            normalization_rule_name="identity", remove_extra_whitespaces=False, split_digits=True, allow_whitespace_only_pieces=True,
            control_symbols=["[INST]", "[/INST]"], num_threads=1, max_sentence_length=100000,
        )
        p = sentencepiece.SentencePieceProcessor(model_file=prefix + ".model")
    rows = []
    for i in range(p.get_piece_size()):
        kind = NORMAL
        if p.is_unknown(i):
            kind = UNKNOWN
        elif p.is_control(i):
            kind = CONTROL
        elif p.is_byte(i):
            kind = BYTE
        elif p.is_unused(i):
            kind = UNUSED
        rows.append((p.id_to_piece(i), p.get_score(i), kind))
    known = {r[0] for r in rows}
    rows += [r for r in MORE if r[0] not in known]
    short = [int(r[1]) if r[1] == int(r[1]) else r[1] for r in rows]
    with open(out, "w", encoding="utf-8") as f:
        json.dump({"tokens": [r[0] for r in rows], "types": [r[2] for r in rows], "scores": short}, f, ensure_ascii=False, separators=(",", ":"))
        f.write("\n")


def gguf(vocabulary, prefix):
    """A GGUF file without tensors."""
    def text(s):
        raw = s.encode()
        return struct.pack("<Q", len(raw)) + raw

    def array(kind, items):
        return struct.pack("<IIQ", ARRAY, kind, len(items)) + b"".join(items)

    values = {
        "general.architecture": struct.pack("<I", STRING) + text("llama"),
        "tokenizer.ggml.model": struct.pack("<I", STRING) + text("llama"),
        "tokenizer.ggml.tokens": array(STRING, [text(t) for t in vocabulary["tokens"]]),
        "tokenizer.ggml.scores": array(FLOAT32, [struct.pack("<f", s) for s in vocabulary["scores"]]),
        "tokenizer.ggml.token_type": array(INT32, [struct.pack("<i", t) for t in vocabulary["types"]]),
    }
    for key, n in {"block_count": 1, "context_length": 64, "embedding_length": 64, "feed_forward_length": 64, "attention.head_count": 1}.items():
        values["llama." + key] = struct.pack("<II", UINT32, n)
    values["llama.attention.layer_norm_rms_epsilon"] = struct.pack("<If", FLOAT32, 1e-5)
    if not prefix:
        values["tokenizer.ggml.add_space_prefix"] = struct.pack("<I?", BOOL, False)
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(values)) + b"".join(text(k) + v for k, v in values.items())


class Reference:
    """llama.cpp with a vocabulary."""

    def __init__(self, vocabulary, prefix):
        import llama_cpp

        self.lib = llama_cpp
        with tempfile.NamedTemporaryFile(suffix=".gguf") as f:
            f.write(gguf(vocabulary, prefix))
            f.flush()
            self.model = llama_cpp.Llama(f.name, vocab_only=True, verbose=False)
        self.vocab = llama_cpp.llama_model_get_vocab(self.model.model)

    def encode(self, raw, special, bos=False):
        return self.model.tokenize(raw, add_bos=bos, special=special)

    def decode(self, ids, special):
        tokens, buffer = (ctypes.c_int32 * len(ids))(*ids), ctypes.create_string_buffer(16 * len(ids) + 16)
        n = self.lib.llama_detokenize(self.vocab, tokens, len(ids), buffer, len(buffer), False, special)
        if n < 0:
            raise ValueError(ids)
        return buffer.raw[:n].decode()


def utf8(raw):
    """The text with U+FFFD for each byte that is no UTF-8, as the package reads it."""
    out = ""
    while raw:
        try:
            return out + raw.decode()
        except UnicodeDecodeError as e:
            out, raw = out + raw[: e.start].decode() + "\ufffd", raw[e.start + 1:]
    return out


def golden(path):
    with open(path, encoding="utf-8") as f:
        vocabulary = json.load(f)
    out = []
    for prefix in (True, False):
        r, cases = Reference(vocabulary, prefix), []
        for given in (TEXTS + RAW + USER_TEXTS)[:: 1 if prefix else 3]:
            text = given if isinstance(given, str) else utf8(given)
            case = {"raw": base64.b64encode(given).decode()} if isinstance(given, bytes) else {"text": given}
            if given not in USER_TEXTS:
                case["ids"] = r.encode(text.encode(), False)
                case["decoded"] = r.decode(case["ids"], True)
            case["special"] = r.encode(text.encode(), True)
            for name, special in (("named", True), ("bare", False)):
                case[name] = r.decode(case["special"], special)
            cases.append(case)
        out.append({"prefix": prefix, "cases": cases})
    print("[")
    for i, g in enumerate(out):
        print('{"prefix":%s,"cases":[' % json.dumps(g["prefix"]))
        print(",\n".join(json.dumps(c, separators=(",", ":")) for c in g["cases"]))
        print("]}" + ("," if i + 1 < len(out) else ""))
    print("]")


if __name__ == "__main__":
    if len(sys.argv) > 3 and sys.argv[1] == "train":
        train(sys.argv[2], sys.argv[3:])
    elif len(sys.argv) == 3 and sys.argv[1] == "golden":
        golden(sys.argv[2])
    else:
        sys.exit(__doc__)
