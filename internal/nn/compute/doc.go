// Package compute does the arithmetic of transformer models in float32: products with packed weights, attention over paged
// keys and values, norms, rotations and activations.
//
// # Fixed order
//
// Every number that comes out is the sum of the same products in the same order, whatever else is computed in the same call: the
// number of rows, their grouping into tiles and the number of threads change nothing, bit for bit. That is what makes a prompt
// computed in one go, in pieces, or on top of a reused prefix give the same logits. Two kernels may differ from each other in
// the last bits.
//
// # Kernels
//
// On amd64, on a processor with AVX2, FMA and F16C, the kernel "avx2" is used: 8 lanes, in assembler. Anything else uses "portable",
// whose dot products are those of gonum (SSE on amd64, Go elsewhere). [Kernel] names the one in use, which is chosen when the program
// starts. With AVX-512, a vector holds the 8 lanes of two sums, for products of several rows: faster, and the same bits.
//
// Weights stay packed as they lie in the file. A product unpacks a panel of 32 rows at a time, uses it for all rows of the
// input, and forgets it.
package compute
