// Package safetensors reads files of the safetensors format: the length of a header in 8 bytes, the header in JSON, and
// the tensors' bytes. It knows the container and no architecture.
//
// [Parse] works on the bytes of a whole file, usually mapped memory, and copies nothing but names. Files may come from
// anywhere: the header is at most [MaxHeader] bytes, and every tensor must lie inside the file, as large as its shape
// says, with no byte that belongs to two tensors or to none.
package safetensors
