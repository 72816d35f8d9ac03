#!/usr/bin/env python3
"""Make a small model of Gemma 3's form and of random weights: of its six layers five see only the last 128 tokens.

usage: sliding_model.py OUT_DIR TOKENIZER_DIR     needs torch and transformers

Its tokens and its chat template are those of the folder TOKENIZER_DIR.
"""
import os
import shutil
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from transformers import AutoTokenizer, Gemma3ForCausalLM, Gemma3TextConfig


def main(out, tokenizer_dir):
    os.makedirs(out, exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        if os.path.exists(os.path.join(tokenizer_dir, name)):
            shutil.copy(os.path.join(tokenizer_dir, name), out)
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_dir)
    torch.manual_seed(0)
    model = Gemma3ForCausalLM(Gemma3TextConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=6,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=64,
        query_pre_attn_scalar=64,
        max_position_embeddings=8192,
        sliding_window=128,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.eos_token_id,
    ))
    model.to(torch.float32).save_pretrained(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
