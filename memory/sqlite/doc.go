// Package sqlite keeps memories in one file: an embedded SQLite with vectors as float32 blobs, in pure Go.
//
//	backend, err := sqlite.Open(ctx, "memories.db", sqlite.Options{})
//	store, err := memory.New(backend, memory.Config{})
//	defer store.Close()
//
// # What is kept when
//
// The file is in WAL mode. A change that was acknowledged is in the file: a process that is killed loses at most the
// change that it had not answered yet, and so does a machine that loses power, unless [Options.Relaxed] is set. A change
// and its row of history are one transaction. Several processes may have one file open; their changes wait for each other.
//
// # What a deletion removes
//
// A deleted memory is overwritten with zeros in the table, in the vectors and in free pages
// (secure_delete). SQLite leaves copies of rows behind that it had moved between pages before; so each
// deletion reads the file once to look for what it removed, and rewrites the file (VACUUM) if that still stands there, or if
// too much was removed to look for. The write-ahead log, which holds older copies of pages, is emptied before the deletion
// returns. If another process is reading at that moment, both are done with the next change, or the log is emptied when the
// store is closed. What the file system or a backup keeps of a file's earlier bytes is beyond this.
//
// The file and its log are readable by their owner only. Only programs that import this package compile SQLite.
package sqlite
