package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ragpilot/ragpilot/batch"
	"github.com/ragpilot/ragpilot/batch/table"
)

func newBatch() *cobra.Command {
	return newGroup("batch", "Run whole tables and files through a model",
		"Batch asks a model for an answer to each row of a table, in an order in which prompts share the longest prefixes.",
		newBatchRun(), newBatchPlan(), newBatchStatus(), newBatchPause(), newBatchResume(), newBatchCancel(), newBatchWrite(), newBatchWorker())
}

// batchPlanFlags are the flags of batch plan.
type batchPlanFlags struct {
	out, cells, columns string
	query, format       string
}

func newBatchPlan() *cobra.Command {
	var f batchPlanFlags
	cmd := &cobra.Command{
		Use:   "plan TABLE",
		Short: "Order the rows and the cells of a table so that prompts share the longest prefixes",
		Long: `Plan reads a table and says how much of its prompts need not be computed if rows, and the cells within each row, are sent in the
order of the plan: against the order of the table, and against what no plan can exceed. With --out it writes the plan, one
JSON line for each request in the order of execution:
{"row": N, "columns": ["c3", "c1"], "rows": [N, M]}
Rows count from 0. rows is there if several rows have the same cells; they are one request.

A table is a CSV, TSV or JSON lines file, also with .gz, a Parquet file, - for the standard input, or with --query a SQLite file
or the URL of a PostgreSQL database. No prompt is sent.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.out, "out", "", "`FILE` for the plan, - for the standard output; empty: none")
	flags.StringVar(&f.cells, "cells", string(batch.Labelled), "`labelled|values`: a cell is a line \"column: value\", or the value alone")
	flags.StringVar(&f.columns, "columns", string(batch.PerRow),
		"`per-row|fixed|as-is`: each row has its own order of cells, all rows have the same, or that of the table")
	flags.StringVar(&f.query, "query", "", "`SQL` that selects the rows from a database")
	flags.StringVar(&f.format, "format", "", "`FORMAT` of the table: csv, tsv, jsonl or parquet; empty: by the name of the file")
	return cmd
}

func (f *batchPlanFlags) run(cmd *cobra.Command, source string) (err error) {
	ctx := cmd.Context()
	if sameFile(source, f.out) {
		return fmt.Errorf("--out %s: it is the table", f.out)
	}
	if source == "-" && f.format == "" {
		return errNoFormat
	}
	t, err := table.Open(ctx, source, table.Options{Format: table.Format(f.format), Query: f.query, Stdin: cmd.InOrStdin()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if _, err := t.Check(ctx); err != nil {
		return err
	}
	p, err := batch.NewPlan(ctx, t, batch.Options{Order: batch.Order(f.columns), Cells: batch.Cells(f.cells)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	switch f.out {
	case "":
		return f.print(cmd.OutOrStdout(), p.Totals())
	case "-":
		err = p.Write(cmd.OutOrStdout())
	default:
		err = writeFile(f.out, p.Write)
	}
	if err != nil {
		return err
	}
	return f.print(cmd.ErrOrStderr(), p.Totals())
}

// errNoFormat: a table without a name is given without its format.
var errNoFormat = errors.New("--format is required: standard input has no name that says it")

// print prints what a plan saves.
func (f *batchPlanFlags) print(w io.Writer, t batch.Totals) error {
	bound := "no plan saves more than"
	if batch.Cells(f.cells) == batch.Values { // the bytes of one cell may be those of two others
		bound = "estimated upper bound"
	}
	share := func(n int64) float64 { return 100 * float64(n) / float64(max(t.Bytes, 1)) }
	_, err := fmt.Fprintf(w, "%s, %s, %d bytes of cells\nsaved: %.1f%% (in the order of the table %.1f%%; %s %.1f%%)\n",
		quantity(t.Rows, "row"), quantity(t.Requests, "request"), t.Bytes, share(t.Saved), share(t.FileOrder), bound, share(t.Bound))
	return err
}
