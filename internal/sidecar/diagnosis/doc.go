// Package diagnosis says why prompts that passed the sidecar were not in the engine's cache. It compares each with earlier ones of the
// same tenant, see package prefixdiff, behind the answer and on one goroutine; it keeps the last misses and counts all by their cause.
//
//	misses, err := diagnosis.New(diagnosis.Options{Bytes: 64 << 20, Registry: registry})
//	...
//	proxy.Options{Diagnosis: misses, ...}
//
// It keeps hashes of prompts and no texts, unless it is asked to. Tenants have indexes of their own, so that nothing of one is compared
// with, or shown to, another.
package diagnosis
