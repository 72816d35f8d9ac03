// Package batch runs whole tables and files through a model: each row becomes a prompt, prompts are ordered so that they share the
// longest prefixes, and each row gets its answer once.
//
//	w, err := batch.AnswerFile(ctx, "orders.csv", "answers.csv", batch.Task{Prompt: batch.Prompt{Text: question}}, engine)
//
// [Jobs] is the database of jobs behind it, an SQLite file or PostgreSQL: [Jobs.Run] stores a job, works on it and writes the answers,
// [Jobs.Work] answers rows of all jobs, on any number of machines. [Func] makes an engine of a function, such as a chain of a framework.
//
// [NewPlan] orders the rows of a table, and the cells within each row, and sends nothing. The problem and the first published algorithm,
// GGR, are those of Liu et al., "Optimizing LLM Queries in Relational Data Analytics Workloads" (MLSys'25); ours is described in
// docs/batch.md.
package batch
