package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ragpilot/ragpilot/batch"
	"github.com/ragpilot/ragpilot/batch/table"
)

// batchRunFlags are the flags of batch run.
type batchRunFlags struct {
	batchEngineFlags

	batchTaskFlags

	out, errors               string
	overwrite, dryRun, noWork bool
	retry                     bool
	query, format, db, name   string
	speed                     float64
}

func newBatchRun() *cobra.Command {
	var f batchRunFlags
	cmd := &cobra.Command{
		Use:   "run TABLE",
		Short: "Ask a model for an answer to each row of a table",
		Long: `Run makes a prompt of each row of a table, orders the prompts so that they share the longest prefixes, asks an engine for the
answers, and writes the table with a column more. Rows with the same prompt are asked once. Before the first request all of the
table is checked, and a report says what the order saves.

The prompt names columns in double braces, {{city}}. {{*}} on a line of its own stands for a line "column: cell" for each column that the
prompt does not name; it is added if the prompt names none. With --columns fixed or per-row the lines with columns may change places,
unless other text stands between them.

Answers are stored in a database as they come, by default an SQLite file beside the output. After an interrupt or a crash the same command
goes on with the rows that have no answer. With the URL of a PostgreSQL database in --db, workers on other machines (ragpilot batch worker)
answer rows too.

A row that fails is in the file of --errors with the reason. The table is a CSV, TSV, Parquet or JSON lines file, OpenAI batch
input (whose answers are OpenAI batch output), - for the standard input, or the result of --query on a database.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	f.registerTask(flags)
	flags.StringVar(&f.out, "out", "", "`FILE` for the table with its answers; empty: TABLE with .answers in its name")
	flags.StringVar(&f.errors, "errors", "", "`FILE` for rows without an answer; empty: --out with .errors in its name")
	flags.BoolVar(&f.overwrite, "overwrite", false, "replace --out and --errors if they exist")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print the report and stop: no request is sent, nothing is written")
	flags.BoolVar(&f.retry, "retry", false, "ask again for rows that failed, and go on with a job that was cancelled")
	flags.BoolVar(&f.noWork, "no-work", false, "send no request: wait for the answers of workers (ragpilot batch worker)")
	flags.StringVar(&f.query, "query", "", "`SQL` that selects the rows from a database")
	flags.StringVar(&f.format, "format", "", "`FORMAT` of the table: csv, tsv, parquet, jsonl or openai; empty: by the name of the file")
	flags.StringVar(&f.db, "db", "", "`FILE|URL` of the database of jobs: SQLite, or PostgreSQL; empty: a file beside --out")
	flags.StringVar(&f.name, "name", "", "`NAME` of the job; empty: the name of --out")
	flags.Float64Var(&f.speed, "prefill-speed", 0,
		"`TOKENS` of prompts that the engine computes in a second, to report how long that takes; 0: not reported")
	f.register(flags)
	return cmd
}

// workerFlags are what --no-work leaves to workers.
var workerFlags = []string{"engine", "api-key", "concurrency", "timeout", "max-cost", "deadline", "keep-going", "schema-unsent"}

// rowFlags say what is asked of each row, which an OpenAI batch file says itself.
var rowFlags = []string{
	"prompt", "prompt-file", "system", "columns", "use", "blocks", "docs", "search", "k", "examples", "schema", "schema-unsent", "max-tokens",
	"temperature", "answer",
}

func (f *batchRunFlags) run(cmd *cobra.Command, source string) (err error) {
	ctx := cmd.Context()
	work, err := f.check(source)
	if err != nil {
		return err
	}
	if f.noWork {
		if err := refuse(cmd.Flags(), "with --no-work it is for the workers", workerFlags...); err != nil {
			return err
		}
	}
	t, err := table.Open(ctx, source, table.Options{Format: table.Format(f.format), Query: f.query, Stdin: cmd.InOrStdin()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	write := batch.WriteOptions{Out: f.out, Errors: f.errors, Column: f.answer, Overwrite: f.overwrite}
	if err := checkOutputs(t, write, f.db); err != nil {
		return err
	}
	if t.Format == table.OpenAI {
		if err := refuse(cmd.Flags(), "an OpenAI batch file has whole requests", rowFlags...); err != nil {
			return err
		}
	}
	model := f.servedModel()
	if f.noWork {
		model = f.model // no model is in this process
	}
	task, closeDocs, err := f.task(ctx, t, model, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeDocs()) }()
	all := opened{close: func() error { return nil }}
	if !f.noWork {
		if all, err = f.open(ctx, &work, cmd.ErrOrStderr()); err != nil {
			return err
		}
	}
	defer func() { err = errors.Join(err, all.close()) }()
	add := batch.AddOptions{Tokenize: all.tokenize, BlockSize: all.block, TextOnly: len(all.remote) < len(all.replicas)}
	if f.dryRun {
		report, err := batch.Preview(ctx, t, task, add)
		if err != nil {
			return err
		}
		return f.report(cmd.OutOrStdout(), &report)
	}
	add.Report = func(r batch.Report) error { return f.report(cmd.ErrOrStderr(), &r) }
	return f.answers(cmd, t, task, batch.RunOptions{
		Add: add, Work: work, NoWork: f.noWork, Write: write, Retry: f.retry,
	})
}

// checkOutputs refuses names of files that cannot be written, before a database is made and an engine is opened.
func checkOutputs(t *table.Table, write batch.WriteOptions, db string) error {
	for _, x := range []struct{ flag, path string }{{"out", write.Out}, {"errors", write.Errors}} {
		if x.path != "" && sameName(x.path, db) {
			return fmt.Errorf("--db %s: it is the file of --%s", db, x.flag)
		}
	}
	return orOverwrite(write.Check(t))
}

// orOverwrite names the flag that helps if an output exists.
func orOverwrite(err error) error {
	if bad, ok := errors.AsType[*table.Error](err); ok && bad.Err == table.ErrExists { //nolint:errorlint // the table itself is never replaced
		return fmt.Errorf("%w; --overwrite replaces it", err)
	}
	return err
}

// sameName reports whether two paths are those of one file, which need not be there.
func sameName(a, b string) bool {
	x, errX := filepath.Abs(a)
	y, errY := filepath.Abs(b)
	return errX == nil && errY == nil && x == y || sameFile(a, b)
}

// answers runs the job and says how it ended.
func (f *batchRunFlags) answers(cmd *cobra.Command, t *table.Table, task batch.Task, o batch.RunOptions) (err error) {
	ctx := cmd.Context()
	jobs, err := batch.Open(ctx, f.db, batch.OpenOptions{Logger: batchLogger(cmd.ErrOrStderr())})
	if err != nil {
		return fmt.Errorf("--db: %w", err)
	}
	defer func() { err = errors.Join(err, jobs.Close()) }()
	show := newBatchProgress(cmd.ErrOrStderr(), &f.batchEngineFlags)
	o.Progress = show.show
	job, written, err := jobs.Run(ctx, f.name, t, task, o)
	show.end()
	switch {
	case errors.Is(err, batch.ErrPaused):
		return fmt.Errorf("%w; the same command goes on", err)
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return errors.New("stopped; the answers so far are kept, and the same command goes on")
	case errors.Is(err, batch.ErrExists):
		return fmt.Errorf("%w; choose another --name, or another --db", err)
	case errors.Is(err, batch.ErrState):
		return fmt.Errorf("%w; --retry goes on, another --name asks all rows again, batch write writes the answers so far", err)
	case err != nil:
		return orOverwrite(err)
	}
	printWritten(cmd.OutOrStdout(), f.out, f.summary(&job), &written)
	if written.Failed == written.Rows {
		return fmt.Errorf("no row has an answer; %s says why", written.Errors)
	}
	return nil
}

// printWritten says what is in the files.
func printWritten(w io.Writer, out, summary string, written *batch.Written) {
	fmt.Fprintf(w, "%s: %s%s\n", out, quantity(written.Rows, "row"), summary)
	if written.Errors != "" {
		fmt.Fprintf(w, "%s: %s without an answer\n", written.Errors, quantity(written.Failed, "row"))
	}
}

// check refuses what cannot be before anything is read, and fills in what goes by other flags.
func (f *batchRunFlags) check(source string) (batch.WorkOptions, error) {
	work, err := f.batchEngineFlags.check()
	if err != nil {
		return work, err
	}
	if err := f.checkTask(); err != nil {
		return work, err
	}
	if err := checkAmounts(amount{"prefill-speed", f.speed}, amount{"temperature", f.temperature}); err != nil {
		return work, err
	}
	if source == "-" && f.format == "" {
		return work, errNoFormat
	}
	if f.out == "" {
		if f.out = answersBeside(source, f.query); f.out == "" {
			return work, errors.New("--out is required: the table has no file name")
		}
	}
	f.db = cmp.Or(f.db, f.out+".jobs.db")
	f.name = cmp.Or(f.name, filepath.Base(f.out))
	if f.noWork && !strings.Contains(f.db, "://") {
		return work, errors.New("--no-work: workers elsewhere need a PostgreSQL database in --db: postgres://user@host/name")
	}
	return work, nil
}

// answersBeside returns the name of the output beside a table: "a.b.csv.gz" has "a.b.answers.csv.gz". A query's result has none.
func answersBeside(source, query string) string {
	if query != "" || source == "-" || strings.Contains(source, "://") {
		return ""
	}
	stem, packed := source, ""
	if ext := filepath.Ext(stem); strings.EqualFold(ext, ".gz") {
		stem, packed = strings.TrimSuffix(stem, ext), ext
	}
	ext := filepath.Ext(stem)
	if stem = strings.TrimSuffix(stem, ext); ext == "" || filepath.Base(stem+"x") == "x" { // ".csv" is a name, without an ending
		return ""
	}
	return stem + ".answers" + ext + packed
}

// report prints what a job will do.
func (f *batchRunFlags) report(w io.Writer, r *batch.Report) error {
	about := "about "
	if r.Exact {
		about = ""
	}
	fmt.Fprintf(w, "%s, %s in %s\n", quantity(r.Rows, "row"), quantity(r.Requests, "request"), quantity(r.Subtrees, "subtree"))
	percent := func(t batch.Tokens) float64 { return 100 * float64(t.Computed) / float64(max(r.Unplanned.Prompt, 1)) }
	fmt.Fprintf(w, "prompt tokens to compute: %s%d (%.1f%% of %d); in the order of the table %s%d (%.1f%%)\n",
		about, r.Planned.Computed, percent(r.Planned), r.Unplanned.Prompt, about, r.Unplanned.Computed, percent(r.Unplanned))
	share := func(n int64) float64 { return 100 * float64(n) / float64(max(r.Bytes, 1)) }
	fmt.Fprintf(w, "of the cells' bytes saved: %.1f%%; in the order of the table %.1f%%; no order saves more than %.1f%%\n",
		share(r.Saved), share(r.FileOrder), share(r.Bound))
	if f.speed > 0 {
		fmt.Fprintf(w, "time for prompts: about %v; in the order of the table %v\n", f.prefill(r.Planned), f.prefill(r.Unplanned))
	}
	if f.prices != (batch.Prices{}) {
		cost := func(t batch.Tokens, requests int) float64 {
			return f.prices.Cost(t.Prompt, t.Prompt-t.Computed, int64(requests*f.maxTokens))
		}
		fmt.Fprintf(w, "cost: at most %s, with answers of %d tokens; in the order of the table %s\n",
			f.money(cost(r.Planned, r.Requests)), f.maxTokens, f.money(cost(r.Unplanned, r.Rows)))
	}
	if r.PerRow > r.Saved {
		fmt.Fprintf(w, "with --columns per-row: %.1f%%; ragpilot eval --table says whether answers stay as good with it\n", share(r.PerRow))
	}
	if r.InPlace != "" {
		fmt.Fprintf(w, "cells keep their places: %s\n", r.InPlace)
	}
	return nil
}

func (f *batchRunFlags) prefill(t batch.Tokens) time.Duration {
	const most = float64(math.MaxInt64 / 2)
	return time.Duration(min(float64(t.Computed)/f.speed*float64(time.Second), most)).Round(time.Second)
}
