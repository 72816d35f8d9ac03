// Package golang_test shows that OpenAI's and Anthropic's SDKs for Go work through the program as they are. Package
// stage says what stands behind it. A second round in one process (-count) fails, as the stage remembers the first.
package golang_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"

	"github.com/ragpilot/ragpilot/ci/sdk/stage"
)

// on is where all scenarios play.
var on *stage.Stage

func TestMain(m *testing.M) {
	for _, v := range os.Environ() { // what would change the SDKs' settings
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "OPENAI_") || strings.HasPrefix(name, "ANTHROPIC_") {
			_ = os.Unsetenv(name)
		}
	}
	code, err := run(m)
	if err != nil {
		fmt.Println(err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	bin := os.Getenv("RAGPILOT_BIN")
	if bin == "" {
		dir, err := os.MkdirTemp("", "ragpilot-sdk-")
		if err != nil {
			return 1, err
		}
		defer os.RemoveAll(dir)
		bin = filepath.Join(dir, "ragpilot")
		build := exec.Command("go", "build", "-o", bin, "./cmd/ragpilot")
		build.Dir = filepath.Join("..", "..", "..")
		if out, err := build.CombinedOutput(); err != nil {
			return 1, fmt.Errorf("go build: %w\n%s", err, out)
		}
	}
	if on, err = stage.Up(bin); err != nil {
		return 1, err
	}
	code = m.Run()
	return code, on.Down()
}

// place is where a client asks, and the name under which the fake keeps what reaches it.
type place struct{ name, scenario string }

// at names a place of the running test.
func at(t *testing.T, name string) place { return place{name, "go " + t.Name() + " " + name} }

func (p place) openai(opts ...openaioption.RequestOption) openai.Client {
	return openai.NewClient(append([]openaioption.RequestOption{
		openaioption.WithBaseURL(on.URL(p.name) + "/v1"), openaioption.WithAPIKey(stage.ClientKey), openaioption.WithHeader("X-Scenario", p.scenario),
	}, opts...)...)
}

func (p place) anthropic(opts ...anthropicoption.RequestOption) anthropic.Client {
	return anthropic.NewClient(append([]anthropicoption.RequestOption{
		anthropicoption.WithBaseURL(on.URL(p.name)), anthropicoption.WithAPIKey(stage.ClientKey), anthropicoption.WithHeader("X-Scenario", p.scenario),
	}, opts...)...)
}

// sent returns what reached the fake from here.
func (p place) sent() []stage.Request { return on.Fake.Sent(p.scenario) }

// context ends in time for a report.
func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), stage.Patience)
	t.Cleanup(cancel)
	return ctx
}

// alike plays a scenario at the fake itself and through the sidecar. What the SDK makes of it must be the same, and not
// nothing. It returns what reached the fake both times.
func alike(t *testing.T, do func(t *testing.T, p place) []string) (there, through []stage.Request) {
	t.Helper()
	return alikeAt(t, stage.Sidecar, do)
}

func alikeAt(t *testing.T, name string, do func(t *testing.T, p place) []string) (there, through []stage.Request) {
	t.Helper()
	direct, sidecar := at(t, stage.Direct), at(t, name)
	want, got := do(t, direct), do(t, sidecar)
	if len(want) == 0 {
		t.Fatal("the SDK saw nothing")
	}
	same(t, "what the SDK shows", want, got)
	there, through = direct.sent(), sidecar.sent()
	if len(there) == 0 || len(there) != len(through) {
		t.Fatalf("%d requests without the sidecar, %d with it", len(there), len(through))
	}
	return there, through
}

// untouched checks that requests came through byte for byte, with their headers.
func untouched(t *testing.T, there, through []stage.Request) {
	t.Helper()
	for i := range there {
		a, b := there[i], through[i]
		same(t, "the request", a.Method+" "+a.Path+" "+a.Body, b.Method+" "+b.Path+" "+b.Body)
		same(t, "its headers", own(a.Header), own(b.Header))
	}
}

// own returns headers without those of the connection, of the scenario, and of the moment.
func own(h http.Header) http.Header {
	h = h.Clone()
	for _, name := range []string{"X-Scenario", "Connection", "Date", "X-Ragpilot-Request-Id"} {
		h.Del(name)
	}
	return h
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		t.Fatalf("%s differs\nwithout the sidecar: %v\nwith it:             %v", what, want, got)
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// passages makes a tool result of documents.
func passages(documents ...string) string {
	return "<documents>\n<document>" + strings.Join(documents, "</document>\n<document>") + "</document>\n</documents>"
}

// results are the tool results of an agent's three steps: four documents, of which two come twice, and then those again.
func results(t *testing.T) (texts [3]string, documents [4]string) {
	for i := range documents {
		documents[i] = fmt.Sprintf("Passage %d of %s: what it says is of no importance, <b>but</b> \"long\" enough.", i, t.Name())
	}
	d := documents
	return [3]string{passages(d[0], d[1], d[2]), passages(d[1], d[3], d[2]), passages(d[3], d[0])}, d
}

// deduplicated checks the last request of an agent: of the second tool result only what is new has been sent, of the
// third a note, and all else is as the client sent it. toolTexts finds the tool results in a decoded body; what it
// returns replaces them.
func deduplicated(t *testing.T, there, through []stage.Request, toolTexts func(body any, replace func(string) string)) {
	t.Helper()
	_, d := results(t)
	read := func(r stage.Request) (body any, texts []string) {
		ok(t, json.Unmarshal([]byte(r.Body), &body))
		toolTexts(body, func(text string) string {
			texts = append(texts, text)
			return ""
		})
		return body, texts
	}
	want, sent := read(there[len(there)-1])
	got, arrived := read(through[len(through)-1])
	same(t, "the body around the tool results", want, got)
	if len(sent) != 3 || len(arrived) != 3 {
		t.Fatalf("%d and %d tool results, want 3", len(sent), len(arrived))
	}
	texts, _ := results(t)
	same(t, "what reaches the upstream without the sidecar", texts[:], sent)
	same(t, "the first tool result", sent[0], arrived[0])
	for _, c := range []struct {
		result     string
		full, gone []string
	}{{arrived[1], d[3:], d[1:3]}, {arrived[2], nil, []string{d[3], d[0]}}} {
		var names []string
		for _, text := range c.gone {
			if names = append(names, text[:40]); strings.Contains(c.result, text) {
				t.Errorf("a document that stands further up is sent again: %s", c.result)
			}
		}
		for _, text := range c.full {
			if !strings.Contains(c.result, text) {
				t.Errorf("a document is missing: %s", c.result)
			}
		}
		if note := `[Documents "` + strings.Join(names, `", "`) + `" — identical to earlier `; !strings.Contains(c.result, note) {
			t.Errorf("there is no %s in %s", note, c.result)
		}
	}
}

// resultHeader reads X-ContextPilot-Result.
func resultHeader(t *testing.T, resp *http.Response) (result struct {
	Intercepted  bool
	Reordered    bool `json:"documents_reordered"`
	Deduplicated int  `json:"documents_deduplicated"`
},
) {
	t.Helper()
	ok(t, json.Unmarshal([]byte(resp.Header.Get("X-ContextPilot-Result")), &result))
	return result
}
