// Package gguf reads GGUF files, versions 2 and 3: the container of ggml's models, little-endian. It knows the container
// and no architecture.
//
// [Parse] works on the bytes of a whole file, usually mapped memory, and copies nothing but names: values and tensors
// point into it. Files may come from anywhere: every count and length is checked against the bytes that are there before
// anything is allocated for it, so what a file can cost is bounded by its own size.
//
// [Write] makes files; tests use it for small models.
package gguf
