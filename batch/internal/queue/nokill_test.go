//go:build !unix

package queue_test

const childDSN = "BATCH_QUEUE_TEST_CHILD"

func child() {}
