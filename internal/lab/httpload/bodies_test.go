package httpload_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/lab/httpload"
	"github.com/ragpilot/ragpilot/internal/lab/upstream"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

// request is what a made-up body holds.
type request struct {
	Model    string
	Stream   bool
	Options  *struct{ Include bool } `json:"stream_options"`
	Max      int                     `json:"max_tokens"`
	Seed     int
	Messages []struct{ Role, Content string }
}

func TestGenerate(t *testing.T) {
	tests := []struct {
		name      string
		o         httpload.BodyOptions
		roles     string
		at        int // message with the documents
		documents int
	}{
		{"none", httpload.BodyOptions{Model: `a"b`}, "system user", 0, 0},
		{"in the system message", httpload.BodyOptions{Documents: 100, K: 5, BlockTokens: 60, Stream: true}, "system user", 0, 5},
		{
			"in a tool's answer",
			httpload.BodyOptions{Documents: 20, K: 3, BlockTokens: 60, Place: httpload.InTool, MaxTokens: 7},
			"system user assistant tool", 3, 3,
		},
		{"one of one", httpload.BodyOptions{Documents: 1, K: 1, BlockTokens: 10}, "system user", 0, 1},
		{"all of all", httpload.BodyOptions{Documents: 4, K: 4, BlockTokens: 10}, "system user", 0, 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			made, err := httpload.Generate(tt.o)
			if err != nil {
				t.Fatal(err)
			}
			server := upstream.New(upstream.Options{})
			words := 0
			for i := range 20 {
				body := made.Body(i)
				var got request
				if err := json.Unmarshal(body, &got); err != nil {
					t.Fatalf("%v in %s", err, body)
				}
				var roles []string
				for _, m := range got.Messages {
					roles = append(roles, m.Role)
				}
				docs := strings.Split(got.Messages[tt.at].Content, "<document>\n")
				if strings.Join(roles, " ") != tt.roles || len(docs)-1 != tt.documents ||
					strings.Contains(docs[0], "<documents>") != (tt.documents > 0) {
					t.Errorf("%s", body)
				}
				for _, d := range docs[1:] {
					d, _, _ = strings.Cut(d, "\n</document>")
					words += tokens.Count(d)
				}
				if got.Model != tt.o.Model || got.Stream != tt.o.Stream || (got.Options != nil) != tt.o.Stream || got.Max != tt.o.MaxTokens ||
					got.Seed != i {
					t.Errorf("%+v", got)
				}
				w := httptest.NewRecorder()
				server.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/v1/chat/completions", bytes.NewReader(body)))
				if w.Code != 200 {
					t.Errorf("status %d", w.Code)
				}
			}
			if mean := float64(words) / float64(max(1, 20*tt.documents)); mean < 0.6*float64(tt.o.BlockTokens) ||
				mean > 1.6*float64(tt.o.BlockTokens) {
				t.Errorf("%.0f tokens in a document, want %d", mean, tt.o.BlockTokens)
			}
			again, err := httpload.Generate(tt.o)
			if err != nil || !bytes.Equal(again.Body(7), made.Body(7)) || bytes.Equal(made.Body(7), made.Body(1007)) {
				t.Error("equal options make other bodies, or other requests equal ones")
			}
		})
	}
}

func TestBadBodies(t *testing.T) {
	for want, o := range map[string]httpload.BodyOptions{
		"documents -1": {Documents: -1}, "k 0": {Documents: 5}, "k 6": {Documents: 5, K: 6},
		"block-tokens 0": {Documents: 5, K: 5}, `place "user"`: {Documents: 5, K: 5, BlockTokens: 1, Place: "user"},
	} {
		if _, err := httpload.Generate(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestReadBodies(t *testing.T) {
	got, err := httpload.ReadBodies(strings.NewReader(` {"a":1}` + "\n\n" + `{"b":2}` + "\r\n"))
	if err != nil || len(got) != 2 || string(got.Body(0)) != `{"a":1}` || string(got.Body(3)) != `{"b":2}` {
		t.Errorf("%s, %v", got, err)
	}
	for text, want := range map[string]string{"": "no request", "\n{}\n[]\n": "line 3", "{\n": "line 1", `{}{}`: "line 1"} {
		if _, err := httpload.ReadBodies(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	broken := io.MultiReader(strings.NewReader("{}\n"), &io.LimitedReader{R: errReader{}, N: 1})
	if _, err := httpload.ReadBodies(broken); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("broken file: %v", err)
	}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

func BenchmarkBody(b *testing.B) {
	made, err := httpload.Generate(httpload.BodyOptions{Documents: 1000, K: 15, BlockTokens: 300})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		b.SetBytes(int64(len(made.Body(i))))
	}
}
