// Package offline orders the blocks of many requests that are known beforehand, so that the trie of all prompts holds
// as few tokens as possible, and schedules the requests depth first in that trie. Finding the best trie is NP-hard;
// this is a heuristic:
//
//  1. agglomeration: always the two nodes that share most tokens are joined; the new node's set is what all sets below
//     have in common. There is one heap entry a node, and inverted lists find its partner.
//  2. regraft: every subtree is taken out and put where it shares most, until that gains nothing.
//  3. ruin and recreate: a few related subtrees are taken out and put back one after the other; the change stays if it
//     is better or, early on, slightly worse (annealing). [Options.Effort] bounds steps 2 and 3.
//
// [Plan] takes all requests at once. Above [Options.Partition] it partitions them by likeness: a sample is
// agglomerated, and its forest decides which requests belong together.
//
//	r, err := offline.Plan(ctx, sets, weight, offline.Options{})
//	for _, i := range r.Schedule {
//		for _, at := range r.Orders[i] {
//			prompt(sets[i][at])
//		}
//	}
//
// Functions may be called concurrently. Saved tokens are those of an unlimited cache; depth-first order keeps what a
// small cache loses small.
package offline
