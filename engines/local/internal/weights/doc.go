// Package weights opens models: what a forward pass needs to know of one.
//
// [Open] reads a GGUF file and returns a [Model]: its [Params], its tensors, its tokenizer and its chat template. Weights
// stay as they are in the file and are not copied; the file is mapped into memory where the system can.
package weights
