//go:build unix

package batch_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/engines/local/localtest"
	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
)

// built compiles the program once for all tests.
var built = sync.OnceValues(func() (path string, err error) {
	if builtIn, err = os.MkdirTemp("", "ragpilot-batch-test"); err != nil {
		return "", err
	}
	path = filepath.Join(builtIn, "ragpilot")
	if out, err := exec.Command("go", "build", "-o", path, "github.com/ragpilot/ragpilot/cmd/ragpilot").CombinedOutput(); err != nil {
		return path, fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// command is the program with arguments.
func command(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return exec.CommandContext(ctx, program, args...)
}

// processes skips a test that starts processes where that only takes time: the race detector does not look at them.
func processes(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds a program and starts processes of it")
	}
	testkit.NotUnderRace(t)
}

// kills is a table and a model for runs that are killed. RAGPILOT_BATCH_KILLS is how often, RAGPILOT_BATCH_ROWS how large the table is;
// RAGPILOT_BATCH_MODEL names another model than the test's.
type kills struct {
	times         int
	source, model string
}

func newKills(t *testing.T) kills {
	t.Helper()
	number := func(variable string, usual int) int {
		n, err := strconv.Atoi(cmp.Or(os.Getenv(variable), strconv.Itoa(usual)))
		if err != nil {
			t.Fatalf("%s: %v", variable, err)
		}
		return n
	}
	k := kills{times: number("RAGPILOT_BATCH_KILLS", 3), model: os.Getenv("RAGPILOT_BATCH_MODEL")}
	if k.model == "" {
		k.model = filepath.Join(t.TempDir(), "tiny.gguf")
		if err := localtest.WriteModel(k.model, 1); err != nil {
			t.Fatal(err)
		}
	}
	var text strings.Builder
	text.WriteString("number,city,item,colour\n")
	for i := range number("RAGPILOT_BATCH_ROWS", 600) {
		fmt.Fprintf(&text, "%d,%s,%s,%s\n", i, []string{"Lima", "Oslo", "Quito"}[i%3], []string{"chair", "table"}[i/3%2],
			[]string{"red", "blue", "grey", "white"}[i/6%4])
	}
	k.source = written(t, "orders.csv", text.String())
	return k
}

// compare runs the job on a database again and again until it is not killed, and compares the output with that of a run that never is.
// each is called after each kill.
func (k kills) compare(t *testing.T, db string, each ...func()) {
	t.Helper()
	dir := t.TempDir()
	args := func(db, out string) []string {
		return []string{
			"batch", "run", k.source, "--model", k.model, "--max-tokens", "4", "--prompt", "Describe this order in one word.",
			"--db", db, "--out", filepath.Join(dir, out),
		}
	}
	if all, err := command(t.Context(), t, args(filepath.Join(dir, "calm.db"), "calm.csv")...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, all)
	}
	killed := killOften(t, k.times, args(db, "killed.csv"), each...)
	calm, err := os.ReadFile(filepath.Join(dir, "calm.csv"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "killed.csv"))
	if err != nil || !bytes.Equal(got, calm) {
		t.Errorf("after %d kills the output is another one (%v)", killed, err)
	}
	t.Logf("%d times killed", killed)
}

// A run of a model in this process that is killed again and again, at random moments, ends with the output of one that is not.
func TestRunSurvivesKills(t *testing.T) {
	processes(t)
	newKills(t).compare(t, filepath.Join(t.TempDir(), "jobs.db"))
}

// So it is with a worker beside the run that is killed as often.
func TestRunAndWorkerSurviveKills(t *testing.T) {
	db, k := storetest.PostgresSchema(t), newKills(t)
	ctx, cancel := context.WithCancel(t.Context())
	worker := command(ctx, t, "batch", "worker", "--db", db, "--model", k.model)
	defer func() {
		cancel()
		_ = worker.Wait()
	}()
	k.compare(t, db, func() {
		if worker.Process != nil {
			_ = worker.Process.Kill()
			_ = worker.Wait()
		}
		worker = command(ctx, t, "batch", "worker", "--db", db, "--model", k.model)
		if err := worker.Start(); err != nil {
			t.Error(err)
		}
	})
}

// An engine that dies in the middle and comes back costs no row, and no answer twice.
func TestRunSurvivesAnEngineThatDies(t *testing.T) {
	processes(t)
	model := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := localtest.WriteModel(model, 1); err != nil {
		t.Fatal(err)
	}
	address := testkit.FreeAddress(t)
	serve := func() *exec.Cmd {
		engine := command(t.Context(), t, "engine", "serve", "--model", model, "--listen", address)
		if err := engine.Start(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); metrics(t, address) == ""; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the engine does not start")
			}
		}
		return engine
	}
	engine := serve()
	source, dir := written(t, "orders.csv", orders(700)), t.TempDir()
	args := func(out string) []string {
		return []string{
			"batch", "run", source, "--engine", "http://" + address, "--max-tokens", "3", "--concurrency", "4",
			"--prompt", "Describe this order in one word.", "--out", filepath.Join(dir, out),
		}
	}
	if all, err := command(t.Context(), t, args("calm.csv")...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, all)
	}
	ended := make(chan error, 1)
	var shown bytes.Buffer
	run := command(t.Context(), t, args("deaths.csv")...)
	run.Stdout, run.Stderr = &shown, &shown
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { ended <- run.Wait() }()
	deaths := 0
	for {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("%v: %s", err, shown.String())
			}
			calm, err1 := os.ReadFile(filepath.Join(dir, "calm.csv"))
			got, err2 := os.ReadFile(filepath.Join(dir, "deaths.csv"))
			if err1 != nil || err2 != nil || !bytes.Equal(calm, got) || deaths == 0 {
				t.Errorf("after %d deaths the output is another one (%v, %v)", deaths, err1, err2)
			}
			_ = engine.Process.Kill()
			_ = engine.Wait()
			return
		case <-time.After(time.Duration(50+rand.IntN(400)) * time.Millisecond):
			// One that dies before the first answer is an engine that is not there.
			if deaths < 3 && answered.MatchString(metrics(t, address)) {
				_ = engine.Process.Kill()
				_ = engine.Wait()
				deaths++
				engine = serve()
			}
		}
	}
}

var answered = regexp.MustCompile(`(?m)^vllm:request_success_total\{.*\} [1-9]`)

// metrics returns what an engine says of itself; nothing if it is not there.
func metrics(t *testing.T, address string) string {
	t.Helper()
	response, err := http.DefaultClient.Do(testkit.Request(t, http.MethodGet, "http://"+address+"/metrics", http.NoBody))
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return string(text)
}

// killOften runs a command until it ends by itself, and kills it so many times before. each is called after each kill.
func killOften(t *testing.T, kills int, args []string, each ...func()) (killed int) {
	t.Helper()
	for {
		var out bytes.Buffer
		cmd := command(t.Context(), t, args...)
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		var after <-chan time.Time
		if killed < kills {
			after = time.After(time.Duration(300+rand.IntN(1700)) * time.Millisecond)
		}
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("%v: %s", err, out.String())
			}
			return killed
		case <-after:
			if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
				continue // it has ended
			}
			t.Log(<-ended)
			killed++
			for _, f := range each {
				f()
			}
		}
	}
}

// A job is stored by one process and answered by a worker in another, which an interrupt ends.
func TestWorkerAnswersJobsOfAnotherProcess(t *testing.T) {
	db := storetest.PostgresSchema(t)
	worker := command(t.Context(), t, "batch", "worker", "--db", db, "--engine", "sim")
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	source, out := written(t, "orders.csv", orders(100)), filepath.Join(t.TempDir(), "out.csv")
	run := command(t.Context(), t, "batch", "run", source, "--db", db, "--no-work", "--out", out, "--prompt", "Where?")
	if all, err := run.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, all)
	}
	if got := records(t, out); len(got) != 101 || got[100][3] == "" {
		t.Errorf("%d records, the last %q", len(got), got[len(got)-1])
	}
	if err := worker.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := worker.Wait(); err != nil {
		t.Errorf("the worker, interrupted: %v", err)
	}
}
