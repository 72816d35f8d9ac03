// Package postgres keeps memories in a PostgreSQL database that many processes share. It needs no extension: vectors are
// float32 bytes that are compared in this process, words are an array with a GIN index.
//
//	backend, err := postgres.Open(ctx, "postgres://agent@db/agents", postgres.Options{})
//	store, err := memory.New(backend, memory.Config{})
//	defer store.Close()
//
// A search reads the vectors of its scope, some 1.5 KB each: right for scopes of thousands of memories, not of millions.
//
// Transactions of one schema run one after the other, by an advisory lock, over all processes. A deleted row is out of reach
// at once; its bytes stay in the table's file, and in the server's write-ahead log, until VACUUM and the server's own
// cleaning get there.
package postgres
