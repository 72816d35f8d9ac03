#!/usr/bin/env python3
"""Make a small Llama model of random weights: its answers mean nothing, its cache behaves like any other's.

usage: tiny_model.py OUT_DIR [TOKENIZER_DIR]     needs tokenizers, torch and transformers

Its tokens are those of the folder TOKENIZER_DIR, or bytes that are merged a little.
"""
import os
import random
import shutil
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

CONTEXT = 8192
CHAT = (
    "{{ bos_token }}{% for m in messages %}{{ '<|' + m['role'] + '|>\n' + m['content'] + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"
)


def made_tokenizer():
    """A tokenizer that has learned words of two to six letters."""
    draw = random.Random(1)
    syllables = [a + b for a in "bcdfghjklmnprstvwz" for b in "aeiou"]
    words = ["".join(draw.choices(syllables, k=draw.randint(1, 3))) for _ in range(1000)]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        (" ".join(draw.choices(words, k=20)) for _ in range(3000)),
        trainers.BpeTrainer(
            vocab_size=1024,
            special_tokens=["<s>", "</s>", "<|system|>", "<|user|>", "<|assistant|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")
    fast.chat_template = CHAT
    return fast


def main(out, tokenizer_dir=None):
    os.makedirs(out, exist_ok=True)
    if tokenizer_dir:
        tokenizer = AutoTokenizer.from_pretrained(tokenizer_dir)
        for name in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(os.path.join(tokenizer_dir, name), out)
    else:
        tokenizer = made_tokenizer()
        tokenizer.save_pretrained(out)
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=CONTEXT,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        tie_word_embeddings=True,
    ))
    model.to(torch.float32).save_pretrained(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
