package sidecar_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A sidecar that is killed with -9 in the middle of a trace and started again on its state has, over the next 200
// requests, at least 95 % of the hits of one that was not; without its state it has fewer.
func TestKilledAndRestarted(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command")
	}
	bin := filepath.Join(t.TempDir(), "ragpilot")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "../../cmd/ragpilot").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const before, after = 300, 200
	hits := func(kill bool, dir func() string) int {
		engine := newRecorder(t)
		p := run(t, bin, engine.URL, dir())
		r, cached := rand.New(rand.NewPCG(7, 7)), 0
		for i := range before + after {
			if i == before && kill {
				p.kill()
				p = run(t, bin, engine.URL, dir())
			}
			body, err := json.Marshal(topical(r, i))
			if err != nil {
				t.Fatal(err)
			}
			prompt, computed := tokens(t, p.url+"/v1/chat/completions", body)
			if i >= before {
				cached += prompt - computed
			}
		}
		p.kill()
		return cached
	}
	kept := t.TempDir()
	whole := hits(false, t.TempDir)
	again := hits(true, func() string { return kept })
	lost := hits(true, t.TempDir)
	t.Logf("cached tokens of the last %d requests: %d uninterrupted, %d restarted, %d without the state", after, whole, again, lost)
	if float64(again) < 0.95*float64(whole) {
		t.Errorf("after the restart %d tokens were cached, %d without it", again, whole)
	}
	if lost >= again {
		t.Errorf("the state changes nothing: %d with it, %d without", again, lost)
	}
}

// topical is a question with twelve of the documents of one of twenty topics in front.
func topical(r *rand.Rand, i int) object {
	topic := r.IntN(20)
	var docs strings.Builder
	for _, d := range r.Perm(24)[:12] {
		fmt.Fprintf(&docs, "<document>document %d of topic %d: %s</document>\n", d, topic, strings.Repeat("it says what it says ", 10))
	}
	return object{"model": "m", "messages": []object{
		{"role": "system", "content": "Answer from these.\n<documents>\n" + docs.String() + "</documents>"},
		{"role": "user", "content": fmt.Sprint("question ", i)},
	}}
}

// process is a running ragpilot serve.
type process struct {
	cmd *exec.Cmd
	url string
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

var listening = regexp.MustCompile(`127\.0\.0\.1:\d+`)

func run(t *testing.T, bin, engine, dir string) *process {
	t.Helper()
	cmd := exec.CommandContext(
		t.Context(),
		bin,
		"serve",
		"--listen",
		"127.0.0.1:0",
		"--admin-addr",
		"",
		"--infer-api-url",
		engine,
		"--state-dir",
		dir,
	)
	cmd.Env = append(os.Environ(), "RAGPILOT_LOG_LEVEL=info")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd}
	t.Cleanup(p.kill)
	found := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if strings.Contains(lines.Text(), "listening") {
				select {
				case found <- listening.FindString(lines.Text()):
				default:
				}
			}
		}
	}()
	select {
	case address := <-found:
		p.url = "http://" + address
	case <-time.After(time.Minute):
		t.Fatal("it does not say where it listens")
	}
	return p
}
