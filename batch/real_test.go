package batch_test

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/batch"
	"github.com/ragpilot/ragpilot/batch/table"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// llamaServer starts a llama-server with one slot.
func llamaServer(t *testing.T) *openai.Engine {
	t.Helper()
	program, model := testkit.Llama(t)
	model = cmp.Or(os.Getenv("RAGPILOT_BATCH_MODEL"), model)
	address := testkit.FreeAddress(t)
	host, port, _ := net.SplitHostPort(address)
	var log bytes.Buffer
	args := []string{"-m", model, "--host", host, "--port", port, "-c", "4096", "--parallel", "1", "--jinja"}
	args = append(args, strings.Fields(os.Getenv("RAGPILOT_BATCH_LLAMA_FLAGS"))...)
	server := exec.CommandContext(context.Background(), program, args...)
	server.Stdout, server.Stderr, server.WaitDelay = &log, &log, time.Second
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	for range 300 {
		request := testkit.Request(t, http.MethodGet, "http://"+address+"/health", http.NoBody)
		if response, err := http.DefaultClient.Do(request); err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				engine, err := openai.New(openai.Config{BaseURL: "http://" + address, Retries: -1, IDs: openai.IDNowhere})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = engine.Close() })
				return engine
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("llama-server does not start: %s", log.String())
	return nil
}

// A llama-server with one slot computes the prompt tokens that the report says, and fewer than in the order of the table.
// RAGPILOT_BATCH_TABLE and RAGPILOT_BATCH_MODEL name another table and model than the test's, and RAGPILOT_BATCH_LLAMA_FLAGS are more
// flags of the server.
func TestRealLlamaServer(t *testing.T) {
	rows := 160
	if testing.Short() {
		rows = 60
	}
	path := cmp.Or(os.Getenv("RAGPILOT_BATCH_TABLE"), written(t, "groups.csv", groups(rows)))
	tab := opened(t, path)
	task := batch.Task{MaxTokens: 1, Prompt: batch.Prompt{Text: "Which department handles this?", Order: batch.PerRow}}

	engine := llamaServer(t) // one for each order: it keeps prompts
	start := time.Now()
	var unplanned engines.Usage
	for row, err := range tab.Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		chat := []engines.Message{{Role: engines.User, Content: asItStands(tab, row)}}
		answer, err := engine.Generate(t.Context(), engines.Request{MaxTokens: 1, Messages: chat}, nil)
		if err != nil {
			t.Fatal(err)
		}
		unplanned.PromptTokens += answer.Usage.PromptTokens
		unplanned.CachedTokens += answer.Usage.CachedTokens
	}
	tookUnplanned := time.Since(start)

	engine = llamaServer(t)
	jobs := jobsAt(t, filepath.Join(t.TempDir(), "jobs.db"))
	var report batch.Report
	start = time.Now()
	job, _, err := jobs.Run(t.Context(), "groups", tab, task, batch.RunOptions{
		Add: batch.AddOptions{Tokenize: engine.TokenizeChat, Report: func(r batch.Report) error {
			report = r
			t.Logf("reported after %v", time.Since(start))
			return nil
		}},
		Work:  batch.WorkOptions{Replicas: []batch.Replica{{Name: "llama", Engine: engine}}, Concurrency: 1},
		Write: batch.WriteOptions{Out: filepath.Join(t.TempDir(), "out.csv")},
	})
	took := time.Since(start)
	if err != nil || !report.Exact {
		t.Fatalf("%v, exact: %v", err, report.Exact)
	}
	computed := job.PromptTokens - job.CachedTokens
	before := int64(unplanned.PromptTokens - unplanned.CachedTokens)
	t.Logf("computed %d tokens of %d, %d were predicted; in the order of the table %d of %d, %d were predicted; %v against %v",
		computed, job.PromptTokens, report.Planned.Computed, before, unplanned.PromptTokens, report.Unplanned.Computed,
		took.Round(time.Millisecond), tookUnplanned.Round(time.Millisecond))
	if off := math.Abs(float64(computed)/float64(report.Planned.Computed) - 1); off > 0.02 {
		t.Errorf("the prediction is off by %.1f%%", 100*off)
	}
	if job.PromptTokens != int64(unplanned.PromptTokens) {
		t.Errorf("%d prompt tokens, and %d in the order of the table", job.PromptTokens, unplanned.PromptTokens)
	}
	if computed >= before {
		t.Errorf("%d tokens were computed, and %d in the order of the table", computed, before)
	}
}

// asItStands is the prompt of a row with its cells in the order of the table.
func asItStands(t *table.Table, row *table.Row) string {
	var b strings.Builder
	b.WriteString("Which department handles this?\n\n")
	for i, cell := range row.Cells {
		b.WriteString(t.Columns[i] + ": " + cell + "\n")
	}
	return b.String()
}
