// Package order orders the rows of a table, and the cells within each row, so that prompts share the longest prefixes.
//
//	p, err := order.New(ctx, source, order.Options{})
//	...
//	defer p.Close()
//	for q, err := range p.Requests() {
//		send(q)
//	}
//
// With an unlimited cache an engine computes each node of the trie of all prompts once, in whatever order rows run. So the order of units
// within rows decides what is saved, and rows run in the order of their sorted prompts: each then shares most with the one before. Finding
// the best trie is NP-hard. This is a heuristic, in bytes:
//
//  1. Whole units are ordered by package offline (agglomeration, regraft, ruin and recreate). Rows that leave its trie at the same place
//     go on with the same column, whose texts begin alike most. Other orders come from a beam search for the best
//     order of columns for all rows, from grouping rows greedily by the unit with the largest worth, and from the rows as given.
//     The best of these are improved side by side, and the best result is kept.
//  2. The trie of all prompts, byte for byte, is improved: every row, and every group of rows that begins with the same units, is taken
//     out and put where it shares most, which may be a part of a unit. Equal bytes count where they stand in prompts, also where one
//     unit ends and another begins.
//  3. Ruin and recreate: a few rows with equal or alike units are taken out and put back one by one. The change stays if it is better
//     or, early on, slightly worse (annealing).
//
// Steps 2 and 3 are bounded by [Options].Effort, in steps and not in time, so that equal tables get equal plans.
//
// The aim and the baseline to compare with are those of Liu et al., "Optimizing LLM Queries in Relational Data Analytics Workloads"
// (MLSys'25), whose greedy group recursion takes the value with the largest gain, groups its rows, and goes on with both parts.
//
// # Large tables
//
// A table of more than 60,000 unlike rows, or of more than a quarter of [Options].Memory, is read three times: to draw a sample, to write
// every row to the part of the table where a trie of the sample sends it, and part by part. Prompts are sorted in runs in a temporary file,
// without the bytes that they share with the prompt before. Time grows with the number of rows; memory does not, but for the file's index.
//
// # Upper bound
//
// Totals.Bound: each text of a unit stands in some prompt, and so must be computed once, but for the beginning that it shares with another
// text. So no plan computes less than the size of a trie of all unlike texts. This holds where a prompt can be read back into units, as
// when each ends in the only line break of its text. Where units have no separator, bytes of one may be bytes of two others; a plan that
// saves more than the bound then raises it to what it saves.
package order
