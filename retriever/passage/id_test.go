package passage_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/retriever/passage"
)

func TestParseID(t *testing.T) {
	for text, want := range map[string]passage.ID{
		"manual@3#12":                 {Doc: "manual", Version: "3", Chunk: 12},
		"manual#12":                   {Doc: "manual", Chunk: 12},
		"manual@3":                    {Doc: "manual", Version: "3", Chunk: -1},
		"manual":                      {Doc: "manual", Chunk: -1},
		"a%40b%23c@v%25#0":            {Doc: "a@b#c", Version: "v%", Chunk: 0},
		"https://example.com/a#intro": {Doc: "https://example.com/a#intro", Chunk: -1},
		"https://u@example.com/a#2":   {Doc: "https://u", Version: "example.com/a", Chunk: 2}, // not one of ours
		"100%":                        {Doc: "100%", Chunk: -1},
		"x#007":                       {Doc: "x#007", Chunk: -1},
		"x@":                          {Doc: "x@", Chunk: -1},
	} {
		if got, err := passage.ParseID(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "#3", "@v#3", "@v"} {
		if got, err := passage.ParseID(text); !errors.Is(err, passage.ErrID) {
			t.Errorf("%q: %+v, %v, want an error", text, got, err)
		}
	}
}

func TestIDsComeBack(t *testing.T) {
	part := rapid.StringMatching(`[a-z@#%0-9é/:. ]{0,8}`)
	rapid.Check(t, func(t *rapid.T) {
		want := passage.ID{Doc: part.Draw(t, "doc") + "x", Version: part.Draw(t, "version"), Chunk: rapid.IntRange(-1, 1000).Draw(t, "chunk")}
		got, err := passage.ParseID(want.String())
		if err != nil || got != want {
			t.Fatalf("%q: %+v, %v, want %+v", want.String(), got, err, want)
		}
	})
}

func FuzzParseID(f *testing.F) {
	f.Add("a@b#1")
	f.Add("%%40#-1")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := passage.ParseID(text)
		if err != nil {
			return
		}
		if again, err := passage.ParseID(id.String()); err != nil || again != id {
			t.Fatalf("%q is %+v, written %q, read %+v, %v", text, id, id.String(), again, err)
		}
	})
}

func TestContentVersion(t *testing.T) {
	a, b := passage.ContentVersion("a text"), passage.ContentVersion("a text.")
	if a == b || a != passage.ContentVersion("a text") || len(a) != 8 {
		t.Errorf("versions %q and %q", a, b)
	}
}
