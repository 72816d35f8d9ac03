// Package weights opens models: what a forward pass needs to know of one, whatever file it came from.
//
// [Open] reads a GGUF file, or a folder with config.json, *.safetensors and tokenizer.json, and returns a [Model]: its
// [Params], its tensors by their GGUF names, its tokenizer and its chat template. Weights stay as they are in the file
// and are not copied; the file is mapped into memory where the system can.
package weights
