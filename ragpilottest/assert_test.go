package ragpilottest_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"text/template"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/prefixdiff"
	"github.com/ragpilot/ragpilot/ragpilottest"
)

var update = flag.Bool("update", false, "write the golden files")

// failing is a test that may fail, and keeps what it says. It is a fake.
type failing struct {
	testing.TB
	said strings.Builder
}

func (f *failing) Helper() {}
func (f *failing) Errorf(format string, args ...any) {
	fmt.Fprintf(&f.said, format+"\n", args...)
}

func (f *failing) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

// A failure fails the test, and so does a recorder that cannot be made.
func TestFailingTest(t *testing.T) {
	bad := ragpilottest.TemplateText("clerk", "a\n{{.Now")
	for name, c := range map[string]struct {
		f    func(t testing.TB)
		want string
	}{
		"assert": {func(t testing.TB) {
			ragpilottest.AssertReuse(t, 0.9, func(*ragpilottest.Recorder) {})
		}, "ragpilottest: requests recorded: 0; at least 2 are needed to compare\n"},
		"recorder": {func(t testing.TB) { ragpilottest.NewRecorder(t, bad) }, "ragpilottest: TemplateText: clerk:2: unclosed action\n"},
	} {
		fake, done := &failing{TB: t}, make(chan struct{})
		go func() {
			defer close(done)
			c.f(fake)
		}()
		<-done
		if got := fake.said.String(); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// golden compares with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// post sends a body to the recorder.
func post(t testing.TB, rec *ragpilottest.Recorder, path, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, rec.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

const rules = "Answer in the language of the question. Never invent an order number. Ask one short question if you are not sure."

func chat(system string, turns ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"model":"m","messages":[{"role":"system","content":%q}`, system)
	for i, text := range turns {
		fmt.Fprintf(&b, `,{"role":%q,"content":%q}`, []string{"user", "assistant"}[i%2], text)
	}
	return b.String() + "]}"
}

func sends(t testing.TB, bodies ...string) func(*ragpilottest.Recorder) {
	return func(rec *ragpilottest.Recorder) {
		for _, body := range bodies {
			post(t, rec, "/v1/chat/completions", body)
		}
	}
}

const clerk = "You are a clerk of the shop.\nIt is {{.Now}}. " + rules + "\n{{range .Docs}}- {{.}}\n{{end}}"

func render(t testing.TB, now string, docs ...string) string {
	t.Helper()
	var b bytes.Buffer
	if err := template.Must(template.New("").Parse(clerk)).Execute(&b, map[string]any{"Now": now, "Docs": docs}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var docs = []string{
	"Apples are kept in the cellar, since it is cold there all the year.", "Pears are eaten within a week of their arrival.",
	"Plums come from the valley, where they ripen late in the summer.",
}

// What fails, and what it says.
func TestFailures(t *testing.T) {
	files := fstest.MapFS{"prompts/clerk.tmpl": {Data: []byte(clerk)}}
	program := fstest.MapFS{"prompts/clerk.go": {Data: []byte("package prompts\n\nconst clerk = `" + clerk + "`\n")}}
	for name, c := range map[string]struct {
		least float64
		run   func(t testing.TB) func(*ragpilottest.Recorder)
		opts  []ragpilottest.Option
	}{
		"clock": {0.9, func(t testing.TB) func(*ragpilottest.Recorder) {
			return sends(t, chat(render(t, "4:14:05"), "Hi"), chat(render(t, "4:15:09"), "Hi", "Hello!", "Where is it?"))
		}, []ragpilottest.Option{ragpilottest.Templates(files)}},
		"documents": {0.9, func(t testing.TB) func(*ragpilottest.Recorder) {
			return sends(t, chat(render(t, "noon", docs...), "Hi"), chat(render(t, "noon", docs[1], docs[2], docs[0]), "Hi"))
		}, []ragpilottest.Option{ragpilottest.TemplateText("clerk", clerk)}},
		"program": {0.9, func(t testing.TB) func(*ragpilottest.Recorder) {
			return sends(t, chat(render(t, "4:14:05"), "Hi"), chat(render(t, "4:15:09"), "Hi"))
		}, []ragpilottest.Option{ragpilottest.Templates(program)}},
		"history": {0.9, func(t testing.TB) func(*ragpilottest.Recorder) {
			return sends(t, chat(rules, "Where is the parcel?", "What can I do for you?", "Where is my order?"),
				chat(rules, "Where is my parcel, please?", "What can I do for you?", "Where is my order?", "In the post.", "Good."))
		}, nil},
		"many": {1, func(t testing.TB) func(*ragpilottest.Recorder) {
			var bodies []string
			for i := range 11 {
				bodies = append(bodies, chat(fmt.Sprintf("This is turn %d. %s", i, rules), "Hi"))
			}
			return sends(t, bodies...)
		}, nil},
		"all": {0.9, func(t testing.TB) func(*ragpilottest.Recorder) {
			return sends(t, chat(rules, "Hi"), chat(rules, "Hi", "Hello!", "Where is the order that I made on the first day of the year?"))
		}, []ragpilottest.Option{ragpilottest.OfAll()}},
		"single": {0.9, func(t testing.TB) func(*ragpilottest.Recorder) { return sends(t, chat(rules, "Hi")) }, nil},
		"apart": {0.9, func(testing.TB) func(*ragpilottest.Recorder) {
			return func(rec *ragpilottest.Recorder) {
				rec.AddText("Where are the plums?")
				rec.AddText("How long is the river?")
			}
		}, nil},
		"partial": {0.9, func(t testing.TB) func(*ragpilottest.Recorder) {
			return func(rec *ragpilottest.Recorder) {
				post(t, rec, "/v1/responses", `{"model":"m","input":"Hi"}`)
				post(t, rec, "/v1/responses", `{"model":"m","input":"Hi","previous_response_id":"resp_1"}`)
			}
		}, nil},
		"unknown": {0.9, func(t testing.TB) func(*ragpilottest.Recorder) {
			return func(rec *ragpilottest.Recorder) {
				post(t, rec, "/v1/embeddings", `{"model":"m","input":"Hi"}`)
				post(t, rec, "/v1/chat/completions", `{"model":"m"}`)
				post(t, rec, "/v1/chat/completions", `{"model"`)
				post(t, rec, "/v1/chat/completions", `{"model":1,"messages":[{"role":"user","content":"Hi"}]}`)
			}
		}, nil},
		"percent":  {95, func(testing.TB) func(*ragpilottest.Recorder) { return nil }, nil},
		"answers":  {0.9, func(testing.TB) func(*ragpilottest.Recorder) { return nil }, []ragpilottest.Option{ragpilottest.Answers()}},
		"template": {0.9, nil, []ragpilottest.Option{ragpilottest.TemplateText("clerk", "a\n{{.Now")}},
		"files":    {0.9, nil, []ragpilottest.Option{ragpilottest.Templates(files, "*.txt")}},
		"pattern":  {0.9, nil, []ragpilottest.Option{ragpilottest.Templates(files, "[")}},
		"script": {0.9, func(t testing.TB) func(*ragpilottest.Recorder) {
			return sends(t, chat(rules, "Hi"), chat(rules, "Hi"))
		}, []ragpilottest.Option{ragpilottest.Answers(
			ragpilottest.Answer{Calls: []ragpilottest.Call{{}}},
			ragpilottest.Answer{Calls: []ragpilottest.Call{{Name: "search", Arguments: "plums"}}},
		)}},
	} {
		t.Run(name, func(t *testing.T) {
			var run func(*ragpilottest.Recorder)
			if c.run != nil {
				run = c.run(t)
			}
			_, err := ragpilottest.CheckReuse(t, c.least, run, c.opts...)
			if err == nil {
				t.Fatal("nothing failed")
			}
			golden(t, name, err.Error()+"\n")
		})
	}
}

// New ends cost nothing, and the report adds up.
func TestReport(t *testing.T) {
	bodies := []string{chat(rules, "Hi"), chat(rules, "Hi", "Hello!", "Where is my order?"), chat(rules, "Another one.")}
	got := ragpilottest.AssertReuse(t, 1, sends(t, bodies...))
	n := prefixdiff.FromText(rules).Tokens()
	want := ragpilottest.Report{Requests: 3, Common: 2*n + 1, Prompt: 2*n + 1 + 2 + 5 + 4}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.ShareOfAll() != float64(2*n+1)/float64(2*n+12) {
		t.Errorf("share of all: %v", got.ShareOfAll())
	}
}

// What is lost counts from the longest prefix, which another request may have than the one that has the rest.
func TestReportOfTwoEarlierRequests(t *testing.T) {
	got := ragpilottest.AssertReuse(t, 0.1, func(rec *ragpilottest.Recorder) {
		rec.AddText("It is 4:14. " + rules)
		rec.AddText("It is 4:15. Which fruit is first?")
		rec.AddText("It is 4:15. " + rules)
	})
	if len(got.Findings) != 1 || got.Findings[0].Against != 0 {
		t.Fatalf("%+v", got)
	}
	f, common := got.Findings[0], prefixdiff.FromText("It is 4:15.").Tokens() // with the second request
	if want := f.Token + f.LostTokens - common; got.Lost != want || f.Token >= common {
		t.Errorf("%d lost, want %d; %+v", got.Lost, want, f)
	}
}
