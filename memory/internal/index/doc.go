// Package index ranks the memories of one scope. It holds in memory what ranking needs of each, about 600 bytes with a vector of
// 384 numbers, and not the texts: a vector in 8 bits a number, and the numbers of its stems.
//
//	x := index.New()
//	x.Put(index.Entry{ID: "1", Text: "Ana is allergic to peanuts.", Vector: vector})
//	found := x.Rank(index.Query{Text: "What may Ana not eat?", Vector: asked}, now)
//
// A search reads every entry once: the vectors as one product of a matrix and a vector, the stems as one walk over their
// numbers. An [Index] is not safe for concurrent changes; readers may run together.
package index
