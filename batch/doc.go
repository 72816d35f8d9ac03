// Package batch plans offline jobs: a whole table, each row of which becomes a prompt.
//
// [NewPlan] orders the rows of a table, and the cells within each row, so that prompts share the longest prefixes. Rows with the same cells
// become one request. The problem and the first published algorithm for it, GGR, are those of Liu et al., "Optimizing LLM Queries in
// Relational Data Analytics Workloads" (MLSys'25); ours is described in docs/batch.md.
//
//	t, err := table.Open(ctx, "orders.csv", table.Options{})
//	p, err := batch.NewPlan(ctx, t, batch.Options{})
//	err = p.Write(out)
package batch
