// Package paper is ContextPilot's context index: hierarchical clustering of contexts by overlap (Eq. 1,
// Alg. 4), greedy search and insertion (§4.2, Alg. 1), ordering by the matched prefix (Alg. 2) and scheduling
// by search path (Alg. 5).
//
// A context is a list of distinct [Doc] values in retrieval order. Docs are small dense integers handed out by
// the caller, because the search keeps tables indexed by them. Nothing here is safe for concurrent use.
//
// Two variants of one algorithm exist. The default follows the paper's text and worked examples. With
// [Options.Recorded] the points where the published implementation was seen to differ are followed instead:
// the top cluster is itself the root, children keep linkage order, a tie goes to the first child, and clusters
// of equal content share a node.
package paper
