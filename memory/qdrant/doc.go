// Package qdrant keeps memories in a Qdrant server that many processes share, through the official client and gRPC.
//
//	backend, err := qdrant.Open(ctx, qdrant.Options{Addr: "localhost:6334"})
//	store, err := memory.New(backend, memory.Config{})
//	defer store.Close()
//
// Memories are points with their vectors in a collection for each length of vectors, such as "ragpilot_memory-384"; history and
// messages are points of the collection "ragpilot_memory". A search reads the memories of its scope, some 2 KB each, if anything
// was changed since the one before, and compares them in this process, as the other backends do: right for scopes of thousands of
// memories, not of millions.
//
// # Transactions
//
// Qdrant changes one point at a time. A transaction writes its points under a name of its own, unseen, and becomes valid by one
// conditional write to a single point, the head, which also lists what is replaced; then what was replaced is deleted. If another
// process was faster, the head does not change and the transaction runs again on what is there now. A process that is killed
// before that write has changed nothing; what it left is deleted with the next change of anybody. One that is killed after it has
// changed everything, and the next change finishes the deletions.
//
// Readers check that the head is still the one they began with, and read again if not. So a store that is written to all the time
// by many processes is read slowly.
//
// # Deletion
//
// When a call returns, no request to the server finds what was deleted: memory, vector, texts in the history. The bytes leave the
// server's files with its own cleaning: segments are rewritten by its optimizer, its log is cut as it grows.
//
// Collections are made with one shard and one replica, and must stay so: conditional writes are decided within a shard.
package qdrant
