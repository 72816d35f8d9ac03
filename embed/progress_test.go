package embed_test

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/embed"
)

func TestReported(t *testing.T) {
	inner := &fake{size: 2}
	var got []embed.Progress
	e := embed.Reported(inner, 2, func(p embed.Progress) { got = append(got, p) })
	vectors, err := e.EmbedDocuments(t.Context(), []string{"a", "bb", "ccc"})
	if err != nil || len(vectors) != 3 || vectors[2][0] != 3 {
		t.Fatal(vectors, err)
	}
	if diff := cmp.Diff([]embed.Progress{{0, 3}, {2, 3}, {3, 3}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	got, inner.err = nil, errors.New("away")
	if _, err := e.EmbedDocuments(t.Context(), []string{"a"}); !errors.Is(err, inner.err) || len(got) != 1 {
		t.Errorf("a failure: %v, reported %v", err, got)
	}
	got, inner.err = nil, nil
	if _, err := e.EmbedDocuments(t.Context(), nil); err != nil || len(got) != 0 {
		t.Errorf("nothing: %v, reported %v", err, got)
	}
}

// A bar is for terminals: logs and files stay clean.
func TestBar(t *testing.T) {
	var b bytes.Buffer
	embed.Bar(&b)(embed.Progress{Done: 1, Total: 2})
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	embed.Bar(f)(embed.Progress{Done: 1, Total: 2})
	if info, err := f.Stat(); err != nil || info.Size() != 0 || b.Len() != 0 {
		t.Errorf("drawn: %q and %v bytes, %v", b.String(), info.Size(), err)
	}
	p := embed.Progress{Done: 1, Total: 2}
	embed.Draw(p, &b)
	p.Done = 2
	embed.Draw(p, &b)
	want := "\rembedding [===============               ] 1 of 2 texts\rembedding [==============================] 2 of 2 texts\n"
	if b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}
