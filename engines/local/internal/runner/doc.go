// Package runner computes many sequences of one model at a time: continuous batching (G.-I. Yu et al., Orca, 2022) with
// prompts computed in pieces (A. Agrawal et al., Sarathi-Serve, 2024) over the paged cache of package kvstore.
//
// One goroutine computes, step by step. A step has the next token of every sequence that generates, and as much of prompts as fits a
// budget, so that a long prompt holds up no answer for longer than a step. Sequences that were cancelled give their pages back at
// once, or at the end of the step that they are in. If pages run out, the sequence that came last gives its own back and is computed
// again later.
//
// What a request's answer is does not depend on what else is computed, nor on whether it had to be computed again; see
// package compute.
package runner
