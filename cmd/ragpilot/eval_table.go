package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ragpilot/ragpilot/batch/table"
	"github.com/ragpilot/ragpilot/internal/lab/eval"
)

// tableFlags are the flags of eval that are about a table.
type tableFlags struct {
	flags              *pflag.FlagSet
	path, ask          string
	sample             int
	query, tableFormat string
}

func (f *tableFlags) register(flags *pflag.FlagSet) {
	f.flags = flags
	flags.StringVar(&f.path, "table", "", "`FILE` or database with the table whose cells are sent in several orders")
	flags.StringVar(&f.ask, "ask", "", "with --table: the `COLUMN` that is hidden and asked for")
	flags.IntVar(&f.sample, "sample", 600, "with --table: `NUMBER` of rows, drawn with --seed")
	flags.StringVar(&f.query, "query", "", "with --table: `SQL` that selects the rows from a database")
	flags.StringVar(&f.tableFormat, "format", "", "with --table: its `FORMAT`, csv, tsv or jsonl; empty: by the name of the file")
}

// given reports whether any of them is.
func (f *tableFlags) given() bool {
	return slices.ContainsFunc([]string{"table", "ask", "sample", "query", "format"}, f.flags.Changed)
}

func (f *evalFlags) checkTable() error {
	flags := f.table.flags
	if err := required(flags, "table", "ask"); err != nil {
		return err
	}
	if err := refuse(flags, "not together with --table", "rows", "generate", "task", "k", "gold", "follow-ups", "hops", "connectivity",
		"block-tokens", "arms", "profile", "permute", "positions"); err != nil {
		return err
	}
	if err := checkLimits(limited{"sample", f.table.sample, 1}); err != nil {
		return err
	}
	return f.checkRest()
}

// runTable asks for a column of a table, in one order of cells after the other.
func (f *evalFlags) runTable(cmd *cobra.Command) error {
	if err := f.checkTable(); err != nil {
		return err
	}
	if !f.table.flags.Changed("engine") {
		f.engine = "local"
	}
	if !f.table.flags.Changed("system") {
		f.system = eval.CellSystem
	}
	ctx := cmd.Context()
	cells, err := f.readTable(cmd)
	if err != nil {
		return err
	}
	scorer, done, err := f.scorer(ctx)
	if err != nil {
		return err
	}
	defer done()
	var outcomes [][]eval.Outcome
	var first eval.Header
	for i := range cells.Forms {
		form := &cells.Forms[i]
		run := form.Run()
		run.Scorer, run.System, run.MaxTokens, run.Seed, run.Parallel = scorer, f.system, f.maxTokens, f.gen.seed, f.parallel
		head, err := run.Header()
		if err != nil {
			return err
		}
		if i == 0 {
			first = head
		}
		if s, ok := scorer.(*localScorer); ok {
			s.engine.Clear() // each order with a cache of its own
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "order of cells: %s\n", form.Arm.Name)
		answered, err := f.ask(ctx, cmd.ErrOrStderr(), run, head, "outcomes-"+form.Arm.Name+".jsonl")
		if err != nil {
			return err
		}
		outcomes = append(outcomes, answered)
	}
	report, err := cells.Judge(first, outcomes, f.settings())
	if err != nil {
		return err
	}
	return f.report(cmd, report)
}

// readTable draws the rows.
func (f *evalFlags) readTable(cmd *cobra.Command) (_ *eval.Cells, err error) {
	ctx := cmd.Context()
	t, err := table.Open(ctx, f.table.path,
		table.Options{Format: table.Format(f.table.tableFormat), Query: f.table.query, Stdin: cmd.InOrStdin()})
	if err != nil {
		return nil, fmt.Errorf("--table: %w", err)
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if _, err := t.Column(f.table.ask); err != nil {
		return nil, fmt.Errorf("--ask: %w", err)
	}
	cells, err := eval.NewCells(ctx, t, eval.CellOptions{Ask: f.table.ask, Rows: f.table.sample, Seed: f.gen.seed})
	if err != nil {
		return nil, fmt.Errorf("--table %s: %w", f.table.path, err)
	}
	return cells, nil
}
