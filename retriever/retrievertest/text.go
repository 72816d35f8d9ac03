package retrievertest

import (
	"errors"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/retriever/store"
)

// checkUnicode: IDs and texts come back byte for byte; letters that look alike are not the same.
func checkUnicode(t *testing.T, s Subject) {
	texts := map[string]string{
		"plain":                    "Wörter mit Umlauten, dünn und schön.",
		"каталог/файл.md#3":        "Слова русского языка.",
		"目录":                       "日本語の文章です。",
		"with space":               "Family 👩‍👩‍👧‍👦 and flags 🇩🇪.",
		`"quoted" \ 'id'`:          "Line\nbreaks\tand tabs\r\n  are kept  ",
		"caf\u00e9":                "Composed caf\u00e9.",
		"cafe\u0301":               "Decomposed cafe\u0301.",
		"עברית":                    "מילים בעברית \u202eמימין\u202c.",
		"a/../b?c=d&e=f%20#g":      "An ID that needs escaping in addresses.",
		strings.Repeat("long", 75): "An ID of 300 bytes.",
		"_under":                   "An ID that begins with an underscore.",
	}
	x := s.New(t)
	docs := make([]store.Document, 0, len(texts))
	for id, text := range texts {
		docs = append(docs, doc(id, "marker "+text))
	}
	upsert(t, x, docs...)
	hits := ask(t, x, "marker", 20)
	if len(hits) != len(texts) {
		t.Errorf("%d hits of %d documents: %q", len(hits), len(texts), ids(hits))
	}
	for _, h := range hits {
		if h.Text != "marker "+texts[h.ID] {
			t.Errorf("%q: text %q, want %q", h.ID, h.Text, "marker "+texts[h.ID])
		}
	}
	for id := range texts {
		if err := x.Delete(within(t), "", id); err != nil {
			t.Errorf("Delete %q: %v", id, err)
		}
	}
	if hits := ask(t, x, "marker", 20); len(hits) != 0 {
		t.Errorf("%q could not be deleted", ids(hits))
	}
}

// checkInvalidUTF8: bytes that are not text are replaced, in documents, and do no harm in queries.
func checkInvalidUTF8(t *testing.T, s Subject) {
	x := s.filled(t, store.Document{ID: "a", Text: "caf\xe9\xff menu\xc3", Metadata: map[string]any{"k": "v\xff", "list": []any{"\xfe"}}})
	h := hit(t, ask(t, x, "menu", 3), "a")
	if want := "caf\uFFFD menu\uFFFD"; h.Text != want {
		t.Errorf("text %q, want %q", h.Text, want)
	}
	if diff := equalMetadata(map[string]any{"k": "v\uFFFD", "list": []any{"\uFFFD"}}, h.Metadata); diff != "" {
		t.Errorf("metadata: -want +got:\n%s", diff)
	}
	if hits := ask(t, x, "menu \xff\xc3", 3); len(hits) != 1 {
		t.Errorf("a query with invalid UTF-8 found %q", ids(hits))
	}
	_, err := x.Search(within(t), store.Query{Text: "menu", K: 1, Filter: store.Eq("k", "\xff")})
	if !errors.Is(err, store.ErrBadQuery) {
		t.Errorf("a filter for invalid UTF-8: %v, want ErrBadQuery", err)
	}
}

// checkLargeDocument: 10 MiB come back whole, or in short 2 MiB.
func checkLargeDocument(t *testing.T, s Subject) {
	const sentence = "The heron stands in the reeds and waits for fish. "
	size := 10 << 20
	if testing.Short() {
		size = 2 << 20
	}
	text := strings.Repeat(sentence, size/len(sentence))
	x := s.filled(t, doc("large", text), doc("small", "A small page."))
	if h := hit(t, ask(t, x, "heron", 2), "large"); h.Text != text {
		t.Errorf("%d bytes came back of %d", len(h.Text), len(text))
	}
	long := strings.Repeat("heron reeds ", 20_000)
	if hits := ask(t, x, long, 1); len(hits) != 1 || hits[0].ID != "large" {
		t.Errorf("a query of %d bytes found %q", len(long), ids(hits))
	}
}
