// Package eval measures whether a model answers as well when blocks stand in another order, are referred to, or come with
// notes: what `ragpilot eval` does. It knows no engine; a model is a [Scorer].
//
//	rows, err := eval.Generate(eval.Options{Rows: 2000, K: 5, Seed: 1})
//	run := &eval.Run{Rows: rows, Arms: arms, Scorer: eval.FromEngine(engine, ""), System: eval.DefaultSystem, MaxTokens: 32}
//	outcomes, err := run.Do(ctx)
//	report, err := eval.Judge(header, outcomes, eval.DefaultSettings())
//
// A [Row] is a question with retrieved blocks and accepted answers, made by [Generate] or read by [ReadRows]. An [Arm]
// is a way to lay rows out: a [profile.Profile] for a [contextpilot.Pilot] of its own, which plans the rows in
// their order as it would in a program. [Run] asks the model and gives one [Outcome] a row; [Log] keeps them in a file
// that a run goes on from. [Judge] makes a [Report] of them: means, paired differences to the arm [Plain] with
// intervals, and a [Verdict].
//
// [NewCells] makes rows of a table, one cell of which is hidden and asked for, and the orders of the other cells that a batch plan gives.
// Each order is a [Run] of its own, since each sends the rows in another order; [Cells.Judge] compares them with the order of the table.
//
// # Statistics
//
// Every arm is compared with plain row by row, so that the difficulty of rows cancels. Intervals are percentiles of a
// [Bootstrap] over conversations; that of exact match must also agree with Tango's score interval, which does not collapse
// where few rows differ. An arm is not inferior if the interval excludes a loss of the margin. [Power] computes how many rows that
// takes. The tests plant known differences and count wrong verdicts.
package eval
