// Package llama computes the forward pass of models of the Llama family (llama, qwen2, qwen3) over paged keys and values.
//
// What a token's logits are depends on the tokens before it and on nothing else: not on how the prompt was cut into
// calls, which of its keys and values were there already, which other sequences are in a call, or the number of
// threads. See package compute.
package llama
