// Package bpe turns text into tokens and back, with byte-level byte pair encoding: the scheme of GPT-2, Llama 3,
// Qwen and SmolLM.
//
// A text is split into words by a [Splitter]; the bytes of each word are tokens at first, and neighbours are merged
// into longer tokens, always the pair that comes first in the list of merges. Every byte sequence can be encoded, and
// decoding gives it back.
package bpe
