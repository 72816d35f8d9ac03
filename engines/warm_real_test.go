package engines_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/llamacpp"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// llamaServer starts a real llama-server, which ends with the test, and returns how to reach it, and an engine that knows its cache.
func llamaServer(t testing.TB, args ...string) (openai.Config, *llamacpp.Engine) {
	t.Helper()
	program, model := testkit.Llama(t)
	address := testkit.FreeAddress(t)
	host, port, _ := net.SplitHostPort(address)
	args = append([]string{
		"-m", model, "--host", host, "--port", port, "-t", "1", "-c", "8192", "--cache-ram", "0",
		"--no-jinja", "--chat-template", "falcon3", // that of the tiny model; as a Jinja template it takes 13 ms without optimiser
	}, args...)
	process, log := exec.CommandContext(context.Background(), program, args...), new(bytes.Buffer)
	process.Stdout, process.Stderr = log, log
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		_ = process.Wait()
		close(exited)
	}()
	t.Cleanup(func() {
		_ = process.Process.Kill()
		<-exited
		if t.Failed() {
			t.Logf("llama-server: …%s", log.String()[max(0, log.Len()-2000):])
		}
	})
	config := openai.Config{BaseURL: "http://" + address, Extra: map[string]json.RawMessage{"ignore_eos": json.RawMessage("true")}}
	engine, err := llamacpp.New(llamacpp.Config{Server: config})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	for limit := time.Now().Add(time.Minute); engine.Health(t.Context()) != nil; {
		select {
		case <-exited:
			t.Fatal("llama-server has ended")
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(limit) {
			t.Fatal("llama-server is not ready")
		}
	}
	return config, engine
}

// realQuestion returns a question with texts of its own for each name: a head of about so many tokens of the tiny model, and
// passages of about 60.
func realQuestion(engine engines.Engine, name string, head, passages int, delay time.Duration) *question {
	text := func(what string, n int) string {
		words := strings.Fields("baba bacer dice dife foba fogu guha hake jeba kilo loki mumo nape peri riso tuve wixo yuza")
		var b strings.Builder
		fmt.Fprintf(&b, "%s %s:", name, what)
		for i := range n {
			b.WriteString(" " + words[(i*i+len(what)*i)%len(words)])
		}
		return b.String()
	}
	q := &question{engine: engine, delay: delay, least: 16, part: 64, system: text("head", (head-10)/2)}
	for i := range passages {
		id := fmt.Sprint(name, i)
		q.blocks = append(q.blocks, contextpilot.Block{ID: id, Text: text(fmt.Sprint(i), 15), Tokens: 60})
	}
	return q
}

// A real engine computes the head while the retriever works: the real request finds it in the cache, and finds the guessed blocks
// if they were right. A guess that is wrong costs nothing but its time.
func TestRealWarm(t *testing.T) {
	for name, c := range map[string]struct {
		args  []string
		guess string
	}{
		"head":                  {[]string{"--parallel", "1"}, ""},
		"right guess":           {[]string{"--parallel", "1"}, "right"},
		"wrong guess":           {[]string{"--parallel", "1"}, "wrong"},
		"several slots":         {[]string{"--parallel", "3"}, ""},
		"several slots, guess":  {[]string{"--parallel", "3"}, "right"},
		"several slots, wrong ": {[]string{"--parallel", "3"}, "wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			_, engine := llamaServer(t, c.args...)
			q := realQuestion(engine, "one", 300, 6, 0)
			q.warmer(t).Close()
			w, err := engines.NewWarmer(engines.WarmerOptions{Engine: engine, Pilot: q.pilot, Unshared: true})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			defer engine.Subscribe(q.pilot.Sink(contextpilot.Scope{}))()
			retrieve := func(_ context.Context, provisional func([]contextpilot.Block)) ([]contextpilot.Block, error) {
				switch c.guess {
				case "right":
					provisional(q.blocks[:4])
				case "wrong":
					provisional(realQuestion(engine, "two", 300, 6, 0).blocks)
				}
				computed := func() bool { s := w.Stats(); return s.Computed > 0 && (c.guess != "right" || s.Sent > 1) }
				for limit := time.Now().Add(10 * time.Second); !computed(); time.Sleep(time.Millisecond) {
					if time.Now().After(limit) {
						t.Fatalf("no warm-up: %+v", w.Stats())
					}
				}
				return q.blocks, nil
			}
			plan, err := w.Retrieve(t.Context(), contextpilot.Request{}, q.build, retrieve)
			if err != nil {
				t.Fatal(err)
			}
			response, err := engine.Generate(t.Context(), q.build(&plan), nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d of %d tokens from the cache, %+v", response.Usage.CachedTokens, response.Usage.PromptTokens, w.Stats())
			least := 250
			if c.guess == "right" { // Ready has waited for the part that was under way
				least += 90
			}
			if response.Usage.CachedTokens < least || w.Stats().Failed > 0 {
				t.Errorf("%d of %d tokens from the cache; %+v", response.Usage.CachedTokens, response.Usage.PromptTokens, w.Stats())
			}
		})
	}
}

// BenchmarkRealPipelining measures times to the first token on a real engine with one slot: serial and pipelined questions take turns,
// each with a system prompt that the engine has never seen.
func BenchmarkRealPipelining(b *testing.B) {
	config, _ := llamaServer(b, "--parallel", "1")
	engine, err := openai.New(config) // which leaves queueing to the server
	if err != nil {
		b.Fatal(err)
	}
	defer engine.Close()
	number := 0
	for _, head := range []int{100, 200, 300} {
		for _, delay := range delays {
			b.Run(fmt.Sprintf("head=%d/delay=%s", head, delay), func(b *testing.B) {
				times := map[string][]time.Duration{}
				ask := func(mode string, wrong bool) {
					number++
					q := realQuestion(engine, fmt.Sprint("q", number), head, 2, delay)
					w := q.warmer(b)
					defer w.Close()
					if wrong {
						q.provisional, q.at = realQuestion(engine, fmt.Sprint("x", number), head, 8, 0).blocks, delay/2
					}
					if mode == "serial" {
						times[mode] = append(times[mode], q.ask(b.Context(), b, nil))
						again := realQuestion(engine, fmt.Sprint("y", number), head, 2, delay)
						again.system, again.pilot = q.system, q.pilot
						times["warm"] = append(times["warm"], again.ask(b.Context(), b, nil))
						return
					}
					times[mode] = append(times[mode], q.ask(b.Context(), b, w))
				}
				for b.Loop() {
					ask("serial", false)
					ask("pipelined", false)
					ask("wrong", true)
				}
				b.ReportMetric(float64(median(times["wrong"]))/float64(time.Millisecond), "wrong-guess-ms")
				reportSaving(b, delay, median(times["serial"]), median(times["warm"]), median(times["pipelined"]))
			})
		}
	}
}
