package citation_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/citation"
	"github.com/ragpilot/ragpilot/contextpilot"
)

// known resolves these labels.
type known []string

func (k known) Resolve(label string) (citation.Source, bool) {
	if !slices.Contains(k, label) {
		return citation.Source{}, false
	}
	return citation.Source{Label: label, Documents: []citation.Document{{Block: contextpilot.Block{ID: label}}}}, true
}

func labels(cited []citation.Citation) []string {
	out := []string{}
	for _, c := range cited {
		out = append(out, c.Label)
	}
	return out
}

var hostile = known{"a", "b", "a,b", "x;y", "guide.md#3", "~00ff", "1", "doc", "日本", strings.Repeat("l", 64)}

func TestForms(t *testing.T) {
	for _, tt := range []struct {
		answer string
		want   []string
	}{
		{"", nil},
		{"Nothing is cited.", nil},
		{"As said [a].", []string{"a"}},
		{"[a][b] [guide.md#3]", []string{"a", "b", "guide.md#3"}},
		{"[a, b; guide.md#3]", []string{"a", "b", "guide.md#3"}},
		{"[a,b]", []string{"a,b"}},
		{"[a,b,1]", []string{"a,b", "1"}},
		{"[x;y; a]", []string{"x;y", "a"}},
		{"[b,a]", []string{"b", "a"}},
		{"[doc a], [doc a, doc b], [doc]", []string{"a", "a", "b", "doc"}},
		{"<doc a> says", []string{"a"}},
		{"<doc a fence=3w5e> says", []string{"a"}},
		{"</doc> <b> <doc > <doc> <document a>", nil},
		{"[ a ], [~00ff], [日本]", []string{"a", "~00ff", "日本"}},
		{"[unknown], [a, unknown], [a, p. 3]", []string{"a", "a"}},
		{"[see [a]", []string{"a"}},
		{"[a\n]", nil},
		{"[a", nil},
		{"[]", nil},
		{"[,]", nil},
		{"x[1] < y[a]", []string{"1", "a"}},
		{"[" + strings.Repeat("l", 64) + "]", []string{strings.Repeat("l", 64)}},
		{"[" + strings.Repeat("l", 65) + "]", nil},
		{"[" + strings.Repeat("a, ", 169) + "a]", slices.Repeat([]string{"a"}, 170)},
		{"[" + strings.Repeat("a, ", 170) + "a]", nil},
		{"**[a](http://example.com)**", []string{"a"}},
	} {
		t.Run(fmt.Sprintf("%.20q", tt.answer), func(t *testing.T) {
			cited := citation.Find(hostile, tt.answer)
			if diff := cmp.Diff(append([]string{}, tt.want...), labels(cited)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, c := range cited {
				if got := tt.answer[c.Start:c.End]; got != c.Label {
					t.Errorf("%q stands at %d to %d of the answer", got, c.Start, c.End)
				}
			}
		})
	}
}

// numbered rewrites a bracket to footnotes, as a program would that numbers its sources.
func numbered() func(text string, cited []citation.Citation) string {
	var order []string
	return func(_ string, cited []citation.Citation) string {
		var b strings.Builder
		for _, c := range cited {
			i := slices.Index(order, c.Label)
			if i < 0 {
				i, order = len(order), append(order, c.Label)
			}
			fmt.Fprintf(&b, "(%d)", i+1)
		}
		return b.String()
	}
}

func TestRewrite(t *testing.T) {
	f := citation.New(hostile, citation.Options{Rewrite: numbered()})
	got := f.Push("Pumps [guide.md#3, a] and [") + "|" + f.Push("a") + "|" + f.Push("], but [not") + "|" + f.End()
	if want := "Pumps (1)(2) and ||(2), but |[not"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestFoundInOrder(t *testing.T) {
	var found []string
	f := citation.New(hostile, citation.Options{Found: func(c citation.Citation) { found = append(found, c.Label) }})
	f.Push("First [b, a")
	if len(found) != 0 {
		t.Errorf("found %q before the bracket was closed", found)
	}
	f.Push("] then")
	if diff := cmp.Diff([]string{"b", "a"}, found); diff != "" {
		t.Error(diff)
	}
}

// A filter finds the same and passes on the same however the answer is cut.
func FuzzFilter(f *testing.F) {
	for _, s := range []string{
		"As said [a, b].", "[doc a]<doc guide.md#3>", "[[a]]]<<doc a>>", "[a,b\n]x;y]", "[日本]",
		"[" + strings.Repeat(",", 600) + "a]",
	} {
		f.Add(s, uint64(0x5a5a5a))
	}
	f.Fuzz(func(t *testing.T, answer string, cuts uint64) {
		whole := citation.New(hostile, citation.Options{Rewrite: numbered()})
		want := whole.Push(answer) + whole.End()
		plain := citation.New(hostile, citation.Options{})
		pieces := citation.New(hostile, citation.Options{Rewrite: numbered()})
		same := citation.New(hostile, citation.Options{Rewrite: func(text string, _ []citation.Citation) string { return text }})
		var got, passed, kept strings.Builder
		for rest := answer; rest != ""; {
			n := min(len(rest), 1+int(cuts%7))
			cuts = cuts>>3 | cuts<<61
			got.WriteString(pieces.Push(rest[:n]))
			passed.WriteString(plain.Push(rest[:n]))
			kept.WriteString(same.Push(rest[:n]))
			if held := answer[kept.Len() : len(answer)-len(rest)+n]; held != "" &&
				(held[0] != '[' && held[0] != '<' || len(held) >= citation.MaxLength) {
				t.Fatalf("%q is held back", held)
			}
			rest = rest[n:]
		}
		got.WriteString(pieces.End())
		passed.WriteString(plain.End())
		kept.WriteString(same.End())
		if got.String() != want {
			t.Errorf("rewritten as %q, in pieces as %q", want, got.String())
		}
		if passed.String() != answer || kept.String() != answer {
			t.Errorf("%q was passed on as %q and %q", answer, passed.String(), kept.String())
		}
		for _, other := range []*citation.Filter{plain, pieces, same} {
			if diff := cmp.Diff(whole.Citations(), other.Citations()); diff != "" {
				t.Errorf("(-whole +pieces):\n%s", diff)
			}
		}
		last := 0
		for _, c := range whole.Citations() {
			if c.Start < last || answer[c.Start:c.End] != c.Label {
				t.Errorf("%q stands at %d to %d", c.Label, c.Start, c.End)
			}
			last = c.End
		}
	})
}

func TestStreams(t *testing.T) {
	pieces := []string{"As ", "", "said [", "a", "], [not"}
	const want = "As said (1), [not"
	rewrite := func() *citation.Filter { return citation.New(hostile, citation.Options{Rewrite: numbered()}) }

	var w bytes.Buffer
	writer := rewrite().Writer(&w)
	for _, p := range pieces {
		if n, err := io.WriteString(writer, p); n != len(p) || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := writer.Close(); err != nil || w.String() != want {
		t.Errorf("Writer: %q, %v", w.String(), err)
	}
	if got := strings.Join(slices.Collect(rewrite().Seq(slices.Values(pieces))), ""); got != want {
		t.Errorf("Seq: %q", got)
	}
	for range rewrite().Seq(slices.Values(pieces)) {
		break // must not go on
	}

	var chunks []string
	f := rewrite()
	next := f.Chunks(func(_ context.Context, chunk []byte) error {
		chunks = append(chunks, string(chunk))
		return nil
	})
	for _, p := range pieces {
		if err := next(context.Background(), []byte(p)); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(append(chunks, f.End()), ""); got != want || len(chunks) != len(pieces) {
		t.Errorf("Chunks: %q", chunks)
	}
	if err := rewrite().Chunks(nil)(context.Background(), []byte("[a]")); err != nil {
		t.Error(err)
	}
}

type broken struct{}

var errBroken = errors.New("broken")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestWriterError(t *testing.T) {
	w := citation.New(hostile, citation.Options{}).Writer(broken{})
	for range 2 {
		if n, err := io.WriteString(w, "text"); n != 0 || !errors.Is(err, errBroken) {
			t.Errorf("%d, %v", n, err)
		}
	}
	if err := w.Close(); !errors.Is(err, errBroken) {
		t.Error(err)
	}
}

func BenchmarkPush(b *testing.B) {
	answer := strings.Repeat("The pump feeds the boiler with water [guide.md#3], as is known [a, b]. ", 20)
	for _, rewrite := range []bool{false, true} {
		b.Run(fmt.Sprintf("rewrite=%t", rewrite), func(b *testing.B) {
			options := citation.Options{}
			if rewrite {
				options.Rewrite = func(text string, _ []citation.Citation) string { return text }
			}
			b.SetBytes(int64(len(answer)))
			b.ReportAllocs()
			for b.Loop() {
				f := citation.New(hostile, options)
				for i := 0; i < len(answer); i += 5 {
					f.Push(answer[i:min(i+5, len(answer))])
				}
				f.End()
			}
		})
	}
}
