// Package qdrant is the retriever over a Qdrant server: by meaning, by words, or both fused by the server, through the
// official client and gRPC.
//
//	index, err := qdrant.Open(qdrant.Options{Addr: "localhost:6334", Collection: "docs", Embedder: embedder})
//	hits, err := index.Search(ctx, store.Query{Text: question, K: 15})
//	qa := chains.NewRetrievalQAFromLLM(llm, retriever.Wrap(pilot, index.Retriever(store.Query{K: 15})))
//
// An [Index] reads any collection whose points have their text in the payload, see [Layout], and writes documents of its
// own with [Index.Upsert]. An [Embedder] makes the vectors; any of langchaingo's fits. [Words] makes the sparse vectors of
// a search by words and needs no model.
//
// # Identity and order
//
// Qdrant's IDs are numbers and UUIDs. A document's ID becomes a UUID of version 5, the same in every process, and stands in
// the payload as it was given: that is the ID of hits. Points that something else wrote and that have no ID in the payload
// are known by their point ID.
//
// The server breaks ties as its points are stored. Search orders them by ID, at the cut as well: it asks for a few hits
// more than wanted, and if all of these score alike, for more. Fusion by ranks ([RRF]) gives equal documents unequal
// scores, so there the server's order of equal documents shows; [DBSF] fuses scores and has no such effect. A graph index
// finds most of the nearest points, not always all of them, and which ones may differ with the number asked for.
//
// # Faults
//
// Errors wrap those of package store. A search is sent again, twice by default, if the server was unavailable; a write is
// not, because the server may have done it. Every call ends with its context, or after Options.Timeout.
package qdrant
