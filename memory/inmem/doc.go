// Package inmem keeps memories in this process: for tests, for short programs, and as the plainest [memory.Backend] to
// read.
//
//	store, err := memory.New(inmem.New(), memory.Config{})
//
// Everything is lost when the process ends; memory/sqlite keeps it in a file.
package inmem
