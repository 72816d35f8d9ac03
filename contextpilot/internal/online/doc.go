// Package online orders the blocks of a request so that later requests will find as many of them as possible in
// front of their prompts.
//
// What will be asked next is unknown, but it will look like what was asked before. For each request [History.Look]
// finds its neighbours: the remembered requests that share most tokens with it. They stand for the likely futures.
// Part of the order, the path, is given: it is resident already. The blocks behind it are arranged by several rules,
// none of which is best on every workload; every rule's order is kept for every request, and a later request credits
// each rule with what it would have found among its neighbours' orders. The leader's order is sent.
//
//	Look(blocks) ──> neighbours, weights       neighbours.go
//	Arrange(path) ──> one order for each rule   rules.go
//	Remember ──> ring of the last requests      history.go
//
// Memory is bounded by the numbers of requests and of blocks remembered. There is no randomness: the same calls give the same
// orders. Not safe for concurrent use.
package online
