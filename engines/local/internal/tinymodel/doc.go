// Package tinymodel writes small models with random weights, for tests: everything about them is real but their size and
// what they say. The vocabulary has a token for every byte, some merges, and the special tokens of ChatML, or is one of
// SentencePiece.
//
// The same options give the same file.
package tinymodel
