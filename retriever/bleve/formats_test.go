package bleve_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/retriever/bleve"
	_ "github.com/ragpilot/ragpilot/retriever/bleve/languages"
	"github.com/ragpilot/ragpilot/retriever/store"
)

func TestFormats(t *testing.T) {
	printed, err := os.ReadFile("internal/pdftext/testdata/chromium.pdf")
	if err != nil {
		t.Fatal(err)
	}
	fsys := fstest.MapFS{
		"handbook.pdf": {Data: printed},
		"broken.PDF":   {Data: printed[:len(printed)/2]},
		"site/a.html":  {Data: []byte("<title>x</title><h1>Harbour</h1><h2>Pilots</h2><p>A pilot boards <b>every</b> ship.</p>")},
		"b.htm":        {Data: []byte("<p>A pilot from \xff afar.</p>")},
		"c.md":         {Data: []byte("# Note\nNo pilot.")},
	}
	x := open(t, fsys, bleve.Options{Include: bleve.Formats()})
	got := find(t, x, "pilot", 9)
	texts := map[string]string{}
	for _, b := range got {
		texts[b.ID] = b.Text
	}
	want := map[string]string{
		"site/a.html#0": "Harbour > Pilots\nA pilot boards every ship.", "b.htm#0": "A pilot from \uFFFD afar.", "c.md#0": "Note\nNo pilot.",
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := x.Skipped(); len(got) != 1 || got[0].Path != "broken.PDF" || !errors.Is(got[0].Err, bleve.ErrBadPDF) {
		t.Errorf("Skipped = %v, want broken.PDF", got)
	}
	hits, err := x.Searcher().Search(t.Context(), store.Query{Text: "what does a berth cost a day", K: 1})
	if err != nil || len(hits) != 1 {
		t.Fatalf("hits %v, %v", hits, err)
	}
	if diff := cmp.Diff(map[string]any{bleve.KeySource: "handbook.pdf", bleve.KeyPage: 2}, hits[0].Metadata); diff != "" {
		t.Errorf("metadata: -want +got:\n%s", diff)
	}
	if hits[0].Version != store.Version(hits[0].Text) {
		t.Errorf("version %q of %q", hits[0].Version, hits[0].Text)
	}
	hits, err = x.Searcher().Search(t.Context(), store.Query{Text: "pilot", K: 9, Filter: store.Not(store.Eq(bleve.KeySource, "c.md"))})
	if err != nil || len(hits) != 2 {
		t.Errorf("filtered by file: %v, %v; want 2 hits", hits, err)
	}
}

func TestLanguages(t *testing.T) {
	fsys := files(
		"de/a.md", "Die Häuser stehen am Hafen.",
		"fr/a.md", "Les navires attendaient au port.",
		"ja/a.md", "東京都の港に船が入る。",
		"en/a.md", "The ships were waiting in the harbour.",
		"en/b.md", "Die is the singular of dice.",
	)
	x := open(t, fsys, bleve.Options{Analyzers: []bleve.FileAnalyzer{{"de/*", "de"}, {"fr/*", "fr"}, {"JA/*", "cjk"}}})
	for query, want := range map[string]string{
		"haus":              "de/a.md#0", // found by its stem
		"navire attend":     "fr/a.md#0",
		"港に":                "ja/a.md#0",
		"a ship that waits": "en/a.md#0",
		"die":               "en/b.md#0", // a stop word in German alone
	} {
		if got := ids(find(t, x, query, 3)); len(got) != 1 || got[0] != want {
			t.Errorf("%q found %q, want %q", query, got, want)
		}
	}
	_, err := bleve.New(fsys, bleve.Options{Analyzers: []bleve.FileAnalyzer{{"*", "klingon"}}})
	if err == nil || !strings.Contains(err.Error(), `Options.Analyzers[0].Analyzer = "klingon"`) {
		t.Errorf("err = %v, want it to name field and value", err)
	}
	_, err = bleve.New(fsys, bleve.Options{Analyzers: []bleve.FileAnalyzer{{"[", "de"}}})
	if err == nil || !strings.Contains(err.Error(), `Options.Analyzers[0].Pattern = "["`) {
		t.Errorf("err = %v, want it to name field and value", err)
	}
}

func TestSnippet(t *testing.T) {
	x := open(t, files("a.md", "word"), bleve.Options{})
	text := "A cache is mentioned here. " + strings.Repeat("Filler stands here. ", 20) + "Prefixes é in the caches are kept. " +
		strings.Repeat("More follows. ", 20)
	got, err := x.Snippet(text, "which prefix is cached?", 60)
	if err != nil {
		t.Fatal(err)
	}
	if want := "stands here. Prefixes é in the caches are kept. More"; got.Text != want || text[got.Start:got.Start+len(got.Text)] != want {
		t.Errorf("snippet %q at %d, want %q", got.Text, got.Start, want)
	}
	var words []string
	for _, m := range got.Matches {
		words = append(words, got.Text[m.Start:m.End])
	}
	if diff := cmp.Diff([]string{"Prefixes", "caches"}, words); diff != "" {
		t.Errorf("matches: -want +got:\n%s", diff)
	}
	if got, err := x.Snippet(text, "nothing like it", 40); err != nil || got.Text != "A cache is mentioned here. Filler stands" ||
		got.Matches != nil {
		t.Errorf("without a match: %+v, %v", got, err)
	}
	if got, err := x.Snippet("short", "short", 40); err != nil || got.Text != "short" || len(got.Matches) != 1 {
		t.Errorf("short text: %+v, %v", got, err)
	}
	if _, err := x.Snippet(text, "x", 5); err == nil || !strings.Contains(err.Error(), "limit = 5") {
		t.Errorf("err = %v, want it to name the limit", err)
	}
}

func FuzzSnippet(f *testing.F) {
	x, err := bleve.New(files("a.md", "word"), bleve.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = x.Close() })
	f.Add("some text with words", "words", 40)
	f.Add(strings.Repeat("é", 100)+" café", "café", 32)
	f.Fuzz(func(t *testing.T, text, query string, limit int) {
		got, err := x.Snippet(text, query, limit)
		if err != nil {
			return
		}
		if len(got.Text) > limit || text[got.Start:got.Start+len(got.Text)] != got.Text {
			t.Errorf("snippet %q at %d of %q, limit %d", got.Text, got.Start, text, limit)
		}
		for _, m := range got.Matches {
			_ = got.Text[m.Start:m.End]
		}
	})
}

func TestProgress(t *testing.T) {
	var seen []bleve.Progress
	open(t, files("a.md", "word", "b.md", "word"), bleve.Options{Progress: func(p bleve.Progress) { seen = append(seen, p) }})
	if diff := cmp.Diff([]bleve.Progress{{0, 2, ""}, {1, 2, "a.md"}, {2, 2, "b.md"}}, seen); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var out bytes.Buffer
	bleve.Bar(&out)(bleve.Progress{Done: 1, Total: 2})
	if out.Len() > 0 {
		t.Errorf("drew %q on what is no terminal", out.String())
	}
	clock := time.Unix(0, 0)
	draw := bleve.NewBar(&out, func() time.Time { return clock })
	for done := range 5 {
		draw(bleve.Progress{Done: done, Total: 4})
		clock = clock.Add(60 * time.Millisecond)
	}
	want := "\rindexing [                              ] 0 of 4 files\rindexing [===============               ] 2 of 4 files" +
		"\rindexing [==============================] 4 of 4 files\n"
	if got := out.String(); got != want {
		t.Errorf("drew %q, want %q", got, want)
	}
}
