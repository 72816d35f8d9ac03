package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ragpilot/ragpilot/batch"
	"github.com/ragpilot/ragpilot/batch/table"
)

// batchLogger reports what workers have to say of databases and engines.
func batchLogger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// withJobs returns a command on the jobs of --db.
func withJobs(use, short, long string, args cobra.PositionalArgs,
	run func(cmd *cobra.Command, jobs *batch.Jobs, args []string) error,
) *cobra.Command {
	var db string
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Args: args,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			jobs, err := openJobs(cmd, db)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, jobs.Close()) }()
			return run(cmd, jobs, args)
		},
	}
	cmd.Flags().StringVar(&db, "db", "", "`FILE|URL` of the database of jobs: SQLite, or PostgreSQL")
	return cmd
}

// openJobs opens a database that is there.
func openJobs(cmd *cobra.Command, db string) (*batch.Jobs, error) {
	if err := required(cmd.Flags(), "db"); err != nil {
		return nil, err
	}
	if !strings.Contains(db, "://") {
		if _, err := os.Stat(db); err != nil {
			if strings.ContainsAny(db, "=@") {
				err = errors.Unwrap(err) // without the name, which may hold a password
			}
			return nil, fmt.Errorf("--db: %w", err)
		}
	}
	jobs, err := batch.Open(cmd.Context(), db, batch.OpenOptions{Logger: batchLogger(cmd.ErrOrStderr())})
	if err != nil {
		return nil, fmt.Errorf("--db: %w", err)
	}
	return jobs, nil
}

func newBatchStatus() *cobra.Command {
	return withJobs("status [JOB]", "Show the jobs of a database, or one of them",
		"Status shows how far jobs are, by name or ID.", cobra.MaximumNArgs(1),
		func(cmd *cobra.Command, jobs *batch.Jobs, args []string) error {
			if len(args) == 1 {
				job, err := jobs.Job(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return printJob(cmd.OutOrStdout(), &job)
			}
			all, err := jobs.List(cmd.Context())
			if err != nil {
				return err
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "id\tjob\tstate\trows\tanswered\tfailed\tfrom cache\tcreated")
			for _, job := range all {
				fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%d\t%d\t%s\t%s\n", job.ID, job.Name, job.State, job.Rows, job.RowsDone, job.RowsFailed,
					hitRatio(&job.Counts), job.Created.Format(time.DateTime))
			}
			return w.Flush()
		})
}

// printJob shows one job.
func printJob(out io.Writer, job *batch.Job) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "job\t%s (%d)\nstate\t%s\n", job.Name, job.ID, job.State)
	if job.Reason != "" {
		fmt.Fprintf(w, "reason\t%s\n", job.Reason)
	}
	fmt.Fprintf(w, "rows\t%d answered, %d failed, of %d\nrequests\t%d answered, %d failed, of %d; %d sent\n", job.RowsDone, job.RowsFailed,
		job.Rows, job.Done, job.Failed, job.Requests, job.Attempts)
	fmt.Fprintf(w, "prompt tokens\t%d, from the cache %s\nanswers' tokens\t%d\n", job.PromptTokens, hitRatio(&job.Counts), job.OutputTokens)
	fmt.Fprintf(w, "rate\t%s\ncreated\t%s\n", rate(&job.Counts), job.Created.Format(time.DateTime))
	if !job.Ended.IsZero() {
		fmt.Fprintf(w, "ended\t%s\n", job.Ended.Format(time.DateTime))
	}
	for _, name := range sortedNames(job.Engines) {
		e := job.Engines[name]
		fmt.Fprintf(w, "by %s\t%s\n", name, quantity(e.Rows, "row"))
	}
	return w.Flush()
}

func hitRatio(c *batch.Counts) string {
	if c.PromptTokens == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(c.CachedTokens)/float64(c.PromptTokens))
}

// rate returns rows a second from the first answer to the last.
func rate(c *batch.Counts) string {
	took := c.LastAnswer.Sub(c.FirstAnswer).Seconds()
	if took <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f rows/s", float64(c.RowsDone+c.RowsFailed)/took)
}

// jobCommand returns a command that changes the state of a job.
func jobCommand(verb, short, long, done string, change func(ctx context.Context, jobs *batch.Jobs, job int64) error) *cobra.Command {
	return withJobs(verb+" JOB", short, long, cobra.ExactArgs(1), func(cmd *cobra.Command, jobs *batch.Jobs, args []string) error {
		job, err := jobs.Job(cmd.Context(), args[0])
		if err == nil {
			err = change(cmd.Context(), jobs, job.ID)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "job %s: %s\n", job.Name, done)
		return nil
	})
}

func newBatchPause() *cobra.Command {
	return jobCommand("pause", "Send no new requests of a job", "Pause lets requests in flight end, and sends no new ones until resume.",
		"paused",
		func(ctx context.Context, jobs *batch.Jobs, job int64) error {
			return jobs.Pause(ctx, job, "paused by command")
		})
}

func newBatchResume() *cobra.Command {
	return jobCommand("resume", "Let a paused job go on", "Resume lets workers take requests of a paused job again.", "running",
		func(ctx context.Context, jobs *batch.Jobs, job int64) error { return jobs.Resume(ctx, job) })
}

func newBatchCancel() *cobra.Command {
	return jobCommand("cancel", "End a job",
		"Cancel ends a job. Its answers so far stay in the database: batch write writes them, and batch run --retry goes on.", "cancelled",
		func(ctx context.Context, jobs *batch.Jobs, job int64) error {
			return jobs.Cancel(ctx, job, "cancelled by command")
		})
}

// batchWriteFlags are the flags of batch write.
type batchWriteFlags struct {
	db, query, format string
	batch.WriteOptions
}

func newBatchWrite() *cobra.Command {
	var f batchWriteFlags
	cmd := &cobra.Command{
		Use:   "write JOB TABLE",
		Short: "Write the answers that a job has so far",
		Long: `Write writes the table of a job with the answers so far, of a job in any state. Rows without one are in the file of --errors,
with the reason. No request is sent, and the job stays as it is. TABLE is that of batch run.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0], args[1]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.db, "db", "", "`FILE|URL` of the database of jobs: SQLite, or PostgreSQL")
	flags.StringVar(&f.Out, "out", "", "`FILE` for the table with its answers")
	flags.StringVar(&f.Errors, "errors", "", "`FILE` for rows without an answer; empty: --out with .errors in its name")
	flags.StringVar(&f.Column, "answer", "answer", "`NAME` of the added column")
	flags.BoolVar(&f.Overwrite, "overwrite", false, "replace --out and --errors if they exist")
	flags.StringVar(&f.query, "query", "", "`SQL` that selects the rows from a database")
	flags.StringVar(&f.format, "format", "", "`FORMAT` of the table: csv, tsv, parquet, jsonl or openai; empty: by the name of the file")
	return cmd
}

func (f *batchWriteFlags) run(cmd *cobra.Command, name, source string) (err error) {
	ctx := cmd.Context()
	if err := required(cmd.Flags(), "out"); err != nil {
		return err
	}
	if source == "-" && f.format == "" {
		return errNoFormat
	}
	jobs, err := openJobs(cmd, f.db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, jobs.Close()) }()
	job, err := jobs.Job(ctx, name)
	if err != nil {
		return err
	}
	t, err := table.Open(ctx, source, table.Options{Format: table.Format(f.format), Query: f.query, Stdin: cmd.InOrStdin()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if err := checkOutputs(t, f.WriteOptions, f.db); err != nil {
		return err
	}
	written, err := jobs.Write(ctx, job, t, f.WriteOptions)
	if err != nil {
		return err
	}
	printWritten(cmd.OutOrStdout(), f.Out, "", &written)
	return nil
}

func newBatchWorker() *cobra.Command {
	var f batchEngineFlags
	var db, name string
	cmd := newCommand("worker", "Answer rows of the jobs in a database",
		"Worker takes requests of all jobs in a database, which batch run has stored there, and stores the answers. Any number\n"+
			"of workers may run, on any number of machines. Requests that share a prefix stay on one engine, and move if the worker or\n"+
			"the engine dies. An interrupt lets requests in flight end.", func(cmd *cobra.Command) (err error) {
			o, err := f.check()
			if err != nil {
				return err
			}
			jobs, err := openJobs(cmd, db)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, jobs.Close()) }()
			all, err := f.open(cmd.Context(), &o, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, all.close()) }()
			o.Name = name
			names := make([]string, len(all.replicas))
			for i, r := range all.replicas {
				names[i] = r.Name // without the password of a URL
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "working with %s\n", strings.Join(names, ", "))
			return jobs.Work(cmd.Context(), o)
		})
	cmd.Flags().StringVar(&db, "db", "", "`FILE|URL` of the database of jobs: SQLite, or PostgreSQL")
	cmd.Flags().StringVar(&name, "name", "", "`NAME` of this worker in River's UI; empty: that of the machine")
	f.register(cmd.Flags())
	return cmd
}
