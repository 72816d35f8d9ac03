// Package quant knows the number formats that model files store weights in: how large a block of weights is, how it
// becomes float32, and how float32 becomes a block.
//
// Everything here is scalar reference code: what faster kernels are compared with. Weights lie in blocks of
// [Type.Block] weights; a matrix's row always begins a new block. All numbers are little-endian.
//
//	format  weights  bytes  a weight is
//	F32           1      4  itself
//	F16           1      2  IEEE half precision
//	BF16          1      2  the upper half of a float32
//	Q8_0         32     34  d*q, q in -128..127
//	Q4_0         32     18  d*(q-8), q in 0..15
//	Q4_1         32     20  d*q + m, q in 0..15
//	Q5_0         32     22  d*(q-16), q in 0..31
//	Q5_1         32     24  d*q + m, q in 0..31
//	Q3_K        256    110  d*scale*(q-4), q in 0..7, scale of 6 bits for each 16 weights
//	Q4_K        256    144  d*scale*q - dmin*min, scale and min of 6 bits for each 32 weights
//	Q5_K        256    176  as Q4_K, q in 0..31
//	Q6_K        256    210  d*scale*(q-32), scale of 8 bits for each 16 weights
//	IQ4_NL       32     18  d*value, one of 16 values of a table
//
// The formats are those of ggml, whose files they come from.
package quant
