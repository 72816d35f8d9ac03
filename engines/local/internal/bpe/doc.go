// Package bpe turns text into tokens and back, with byte pair encoding: that of bytes, which GPT-2, Llama 3, Qwen and
// SmolLM have, and that of SentencePiece, which Llama 2, Mistral 7B and TinyLlama have.
//
// Of bytes: a text is split into words by a [Splitter]; the bytes of each word are tokens at first, and neighbours are merged
// into longer tokens, always the pair that comes first in the list of merges. Every byte sequence can be encoded, and
// decoding gives it back.
//
// Of SentencePiece: the characters of a text are tokens at first, and the pair that makes the token of the highest score
// is merged first. Characters without a token are written in bytes.
package bpe
