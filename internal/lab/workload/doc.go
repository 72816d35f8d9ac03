// Package workload makes synthetic traces: requests with the blocks that they retrieved in rank order, and the
// blocks' texts.
//
//	requests, blocks, err := workload.Generate(workload.Options{Seed: 1, Contexts: 500, Zipf: 1})
//
// [Options] describe a workload and [Named] gives those that have a name; [New] checks them and returns a [Generator],
// which walks requests and blocks without keeping them; [Generate] returns all at once. Numbers of tokens are those of
// internal/prompt/tokens: the text of a block has as many as were drawn, its markup in a prompt comes on top.
//
// # How requests are drawn
//
// Blocks come in topics. The list of a topic begins with its own blocks, continues with some of its neighbours' if
// it has few, and contains a few blocks that all topics have. A request takes a topic by its popularity, draws k distinct
// blocks of its list, each place with a weight of its own among those left, and then ranks them: a draw of the same kind,
// so that central blocks stand in front as a rule and borderline ones behind. Two requests of a topic so agree on its
// core, differ at the edge, and order neither alike. Later turns of a session stay on its topic. Texts are made-up words:
// frequent ones, and some of the block's topic, which questions on that topic also use.
//
// # The same everywhere
//
// The same options make the same bytes on every machine. Everything is drawn from [math/rand/v2.PCG], whose sequence is
// fixed, with methods of this package instead of [math/rand/v2.Rand]'s; weights, powers and logarithms are integers
// in fixed point, since floating-point functions and fused multiply-add differ between processors; and no map is
// walked. Options are the only floats: each is turned into fixed point by one exact multiplication. A change of this
// package that changes the bytes shows in the hashes of its tests.
package workload
