//go:build !unix

package sqlite_test

// childFile is never set here.
const childFile = "MEMORY_SQLITE_TEST_CHILD"

func child(string) {}

// reembedFile is never set here either.
const reembedFile = "MEMORY_SQLITE_TEST_REEMBED"

func reembedChild(string) error { return nil }
