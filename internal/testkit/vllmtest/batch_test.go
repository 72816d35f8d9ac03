//go:build unix

package vllmtest

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/batch"
	tables "github.com/ragpilot/ragpilot/batch/table"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/engines/vllm"
)

// complaints is a table in which rows of one product share its description, and stand far from each other.
func complaints(rows int) string {
	text := "id,city,product\n"
	for i := range rows {
		text += fmt.Sprintf("%d,%s,%s\n", i, passage("city", i%7, 2), passage("product", i%40, 40))
	}
	return text
}

// TestRealBatch asks a server about each row of a table, in the order of the table and with batch, one request at a time and several. The
// server must compute exactly the tokens that the report says: requests that run at the same time must not compute what they share.
func TestRealBatch(t *testing.T) {
	python, model := needs(t, envCount)
	const block, pool = 32, 400_000
	dtype := cmp.Or(os.Getenv(envDtype), "bfloat16")
	s := serve(t, options{
		python: python, model: model, block: block, blocks: pool/block + 1, window: 8192, dtype: dtype,
		threads: setting(t, envThreads, 2), gigabytes: gigabytes(t, model, dtype, pool+block),
	})
	engine, err := openai.New(openai.Config{BaseURL: s.url(), Model: served, Retries: -1, IDs: openai.IDHeader})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	b := &batchRun{t: t, engine: engine, cache: s.client(vllm.Config{}), block: block, path: os.Getenv(envTable)}
	if b.path == "" {
		b.path = filepath.Join(t.TempDir(), "complaints.csv")
		if err := os.WriteFile(b.path, []byte(complaints(600)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := b.fileOrder()
	for _, at := range []int{1, 4, 0} {
		name := fmt.Sprintf("%d at a time", at)
		if at == 0 {
			name = "as many as batch finds"
		}
		t.Run(name, func(t *testing.T) {
			b.t = t
			job, report, took := b.run(at)
			computed := job.PromptTokens - job.CachedTokens
			t.Logf("%d tokens of %d computed, predicted %d; in the order of the table %d, predicted %d; took %v, %v",
				computed, job.PromptTokens, report.Planned.Computed, before.computed, report.Unplanned.Computed,
				took.Round(time.Second), before.took.Round(time.Second))
			if !report.Exact || job.PromptTokens != report.Planned.Prompt {
				t.Errorf("%d prompt tokens, the report says %d, exact: %v", job.PromptTokens, report.Planned.Prompt, report.Exact)
			}
			if computed != report.Planned.Computed || before.computed != report.Unplanned.Computed || computed >= before.computed {
				t.Errorf("%d and %d tokens computed, the report says %d and %d",
					computed, before.computed, report.Planned.Computed, report.Unplanned.Computed)
			}
		})
	}
}

// batchRun runs the same table in different ways.
type batchRun struct {
	t      *testing.T
	engine *openai.Engine // as the command has it
	cache  *vllm.Engine
	block  int // tokens
	path   string
}

// unplanned is what it takes to ask the rows as they stand.
type unplanned struct {
	computed int64
	took     time.Duration
}

const asked = "Which department handles this?"

func (b *batchRun) open() *tables.Table {
	b.t.Helper()
	if err := b.cache.ResetCache(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	in, err := tables.Open(b.t.Context(), b.path, tables.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = in.Close() })
	return in
}

// fileOrder asks the rows one after the other.
func (b *batchRun) fileOrder() (u unplanned) {
	in, start := b.open(), time.Now()
	for row, err := range in.Rows(b.t.Context()) {
		if err != nil {
			b.t.Fatal(err)
		}
		var prompt strings.Builder
		prompt.WriteString(asked + "\n\n")
		for i, cell := range row.Cells {
			prompt.WriteString(in.Columns[i] + ": " + cell + "\n")
		}
		chat := []engines.Message{{Role: engines.User, Content: prompt.String()}}
		answer, err := b.engine.Generate(b.t.Context(), engines.Request{MaxTokens: 1, Messages: chat}, nil)
		if err != nil {
			b.t.Fatal(err)
		}
		u.computed += int64(answer.Usage.PromptTokens - answer.Usage.CachedTokens)
	}
	u.took = time.Since(start)
	return u
}

// run asks the rows as planned, so many at a time, 0: as many as turn out to be good.
func (b *batchRun) run(concurrency int) (job batch.Job, report batch.Report, took time.Duration) {
	in := b.open()
	jobs, err := batch.Open(b.t.Context(), filepath.Join(b.t.TempDir(), "jobs.db"), batch.OpenOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	defer jobs.Close()
	start := time.Now()
	task := batch.Task{MaxTokens: 1, Prompt: batch.Prompt{Text: asked, Order: batch.PerRow}}
	job, written, err := jobs.Run(b.t.Context(), "complaints", in, task, batch.RunOptions{
		Add: batch.AddOptions{
			Tokenize: b.engine.TokenizeChat, BlockSize: b.block, Report: func(r batch.Report) error { report = r; return nil },
		},
		Work:  batch.WorkOptions{Replicas: []batch.Replica{{Name: "vllm", Engine: b.engine}}, Concurrency: concurrency},
		Write: batch.WriteOptions{Out: filepath.Join(b.t.TempDir(), "answers.csv")},
	})
	if err != nil || written.Failed != 0 || written.Rows != report.Rows {
		b.t.Fatalf("%v, wrote %+v of %d rows", err, written, report.Rows)
	}
	return job, report, time.Since(start)
}
