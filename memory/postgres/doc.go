// Package postgres keeps memories in a PostgreSQL database that many processes share. It needs no extension: vectors are
// float32 bytes that are compared in this process.
//
//	backend, err := postgres.Open(ctx, "postgres://agent@db/agents", postgres.Options{})
//	store, err := memory.New(backend, memory.Config{})
//	defer store.Close()
//
// The first search of a scope reads its memories, some 2 KB each; later ones what has changed: right for scopes of a hundred thousand
// memories, not of millions.
//
// Transactions of one schema run one after the other, by an advisory lock, over all processes. A deleted row is out of reach
// at once; its bytes stay in the table's file, and in the server's write-ahead log, until VACUUM and the server's own
// cleaning get there.
package postgres
