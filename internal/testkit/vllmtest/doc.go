// Package vllmtest runs the library against real vLLM servers that it starts and kills itself. It is tests only, which skip
// with the reason where there is no vLLM; `make engine-test` says what it needs and runs them.
//
// The accuracy tests compare, request by request, what the index of cached blocks predicts with what the engine reports,
// through evictions, crashes, cut connections and subscribers that stop reading. The timing test sends a recorded trace in plain
// order and as planned, and compares the times to the first token.
package vllmtest
