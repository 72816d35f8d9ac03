package bpe_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ragpilot/ragpilot/engines/local/internal/bpe"
	"github.com/ragpilot/ragpilot/engines/local/internal/gguf"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// vocabulary is what a GGUF file has of one.
type vocabulary struct {
	Tokens []string
	Types  []int32
	Scores []float32 // of SentencePiece
	Merges []string  // of bytes
}

// add appends a token.
func (v *vocabulary) add(text string, score float32, kind int32) {
	v.Tokens, v.Types, v.Scores = append(v.Tokens, text), append(v.Types, kind), append(v.Scores, score)
}

// pairs are the lines of a GGUF file, and more in the place of those of the same key. One of nil is left out.
func (v vocabulary) pairs(more map[string]any) []gguf.Pair {
	lines := map[string]any{
		"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": v.Tokens, "tokenizer.ggml.token_type": v.Types,
		"tokenizer.ggml.scores": v.Scores,
	}
	maps.Copy(lines, more)
	var pairs []gguf.Pair
	for key, value := range lines {
		if value != nil {
			pairs = append(pairs, gguf.Pair{Key: key, Value: value})
		}
	}
	return pairs
}

func (v vocabulary) tokenizer(t testing.TB, more map[string]any) *bpe.Tokenizer {
	t.Helper()
	return testkit.Must(bpe.FromGGUF(metadata(t, v.pairs(more)...)))(t)
}

// least is a vocabulary of the bytes and some letters. The first of them is token 259.
func least() vocabulary {
	var v vocabulary
	v.add("<unk>", 0, 2)
	v.add("<s>", 0, 3)
	v.add("</s>", 0, 3)
	for b := range 256 {
		v.add(fmt.Sprintf("<0x%02X>", b), 0, 6)
	}
	for _, r := range "▁ab</s>" {
		v.add(string(r), -100, 1)
	}
	return v
}

// learnt is the vocabulary of tiny models.
func learnt(t testing.TB, prefix bool) *bpe.Tokenizer {
	t.Helper()
	var v vocabulary
	read(t, "../../tinymodel/testdata/sentencepiece.json", &v)
	var more map[string]any
	if !prefix {
		more = map[string]any{"tokenizer.ggml.add_space_prefix": false}
	}
	return v.tokenizer(t, more)
}

// reference is what llama.cpp makes of texts.
type reference struct {
	Prefix bool `json:"prefix"`
	Cases  []struct {
		Text string `json:"text"`
		Raw  []byte `json:"raw"` // in the place of Text: no UTF-8
		// IDs are those of ordinary text, nil: it is not compared. Decoded is their text.
		IDs     []int32 `json:"ids"`
		Decoded string  `json:"decoded"`
		// Special are the tokens with names of special tokens, Named their text with those names, Bare without.
		Special []int32 `json:"special"`
		Named   string  `json:"named"`
		Bare    string  `json:"bare"`
	} `json:"cases"`
}

func TestAsLlamaCpp(t *testing.T) {
	var list []reference
	read(t, "sentencepiece.golden.json", &list)
	for _, r := range list {
		t.Run(fmt.Sprintf("prefix %v", r.Prefix), func(t *testing.T) {
			tok := learnt(t, r.Prefix)
			for _, c := range r.Cases {
				text := c.Text
				if c.Raw != nil {
					text = string(c.Raw)
				}
				if c.IDs != nil {
					if ids := tok.Encode(text, false); !slices.Equal(ids, c.IDs) {
						t.Errorf("%q is\n%v, want\n%v", text, ids, c.IDs)
					}
					same(t, tok, c.IDs, true, c.Decoded)
				}
				if ids := tok.Encode(text, true); !slices.Equal(ids, c.Special) {
					t.Errorf("%q with special tokens is\n%v, want\n%v", text, ids, c.Special)
				}
				same(t, tok, c.Special, true, c.Named)
				same(t, tok, c.Special, false, c.Bare)
			}
		})
	}
}

// same checks the text of tokens, at once and one by one.
func same(t *testing.T, tok *bpe.Tokenizer, ids []int32, special bool, want string) {
	t.Helper()
	if got := tok.Decode(ids, special); got != want {
		t.Errorf("%v is %q, want %q", ids, got, want)
	}
	if got := oneByOne(tok.Stream(special), ids); got != want {
		t.Errorf("%v is, one by one, %q, want %q", ids, got, want)
	}
}

func oneByOne(s *bpe.Stream, ids []int32) string {
	text := ""
	for _, id := range ids {
		text += s.Next(id)
	}
	return text + s.End()
}

// What continues a text keeps the space at its beginning; the next text of a stream loses it again.
func TestContinue(t *testing.T) {
	tok := learnt(t, true)
	ids := tok.Encode("the end", false)
	s := tok.Continue()
	if got := oneByOne(s, ids); got != " the end" {
		t.Errorf("continued with %q", got)
	}
	s = tok.Stream(false)
	for range 2 {
		if got := oneByOne(s, ids); got != "the end" {
			t.Errorf("a text is %q", got)
		}
	}
}

// A character of several tokens comes when it is whole.
func TestStreamOfBytes(t *testing.T) {
	tok := least().tokenizer(t, nil)
	s, got := tok.Stream(false), []string{}
	for _, id := range tok.Encode("é€", false) {
		got = append(got, s.Next(id))
	}
	if want := []string{"", "", "é", "", "", "€"}; !slices.Equal(got, want) || s.End() != "" {
		t.Errorf("the pieces are %q, want %q", got, want)
	}
	if s.Next(3 + 0xc3); s.End() != "\ufffd" {
		t.Error("half a character at the end is no U+FFFD")
	}
}

// Ordinary text is never a special token, a byte by its name or an unused token, even if merges lead there.
func TestOrdinaryTextIsNoSpecialToken(t *testing.T) {
	v := least()
	for _, text := range []string{"</", "s>", "</s", "<s"} {
		v.add(text, -1, 1)
	}
	v.add("<note>", 0, 4)
	v.add("ab", 5, 5)
	tok := v.tokenizer(t, nil)
	for _, text := range []string{"</s>", "a<s>b", "<note>", "ab"} {
		for _, id := range tok.Encode(text, false) {
			if kind := v.Types[id]; kind != 1 && kind != 6 {
				t.Errorf("%q has token %d, %q", text, id, v.Tokens[id])
			}
		}
	}
	if id, ok := tok.ID("<note>"); !ok || tok.Special(id) {
		t.Errorf("<note> is %d, %v", id, ok)
	}
	if ids := tok.Encode("x<note>", true); ids[len(ids)-1] != int32(len(v.Tokens)-2) {
		t.Errorf("by its name, <note> is %v", ids)
	}
	if id, ok := tok.ID("</s>"); id != 2 || !ok || !tok.Special(2) {
		t.Errorf("</s> is %d, %v, special %v", id, ok, tok.Special(2))
	}
}

// A megabyte, in seconds.
func TestAVeryLongTextOfPieces(t *testing.T) {
	testkit.NotUnderRace(t)
	tok := learnt(t, true)
	for _, word := range []string{"a", "the block ", "\u0301é", "="} {
		text := strings.Repeat(word, 1<<20/len(word))
		if got := tok.Decode(tok.Encode(text, false), false); got != text {
			t.Errorf("a long text of %q came back as another of %d bytes", word, len(got))
		}
	}
}

func TestBrokenVocabulariesOfPieces(t *testing.T) {
	with := func(text string, score float32, kind int32) vocabulary {
		v := least()
		v.add(text, score, kind)
		return v
	}
	without := func(id int) vocabulary {
		v := least()
		return vocabulary{
			Tokens: slices.Delete(v.Tokens, id, id+1), Types: slices.Delete(v.Types, id, id+1), Scores: slices.Delete(v.Scores, id, id+1),
		}
	}
	for name, c := range map[string]struct {
		v    vocabulary
		key  string // of what is put in its place, "": nothing
		put  any
		want string
	}{
		"sound":         {v: least()},
		"empty":         {v: with("", 0, 1)},
		"no tokens":     {least(), "tokenizer.ggml.tokens", nil, `key "tokenizer.ggml.tokens": not there`},
		"numbers":       {least(), "tokenizer.ggml.tokens", []int32{1}, `key "tokenizer.ggml.tokens": not there, or no array of strings`},
		"no scores":     {least(), "tokenizer.ggml.scores", nil, `key "tokenizer.ggml.scores": not there`},
		"whole scores":  {least(), "tokenizer.ggml.scores", []int32{1}, `key "tokenizer.ggml.scores": not there, or no array of float32`},
		"few scores":    {least(), "tokenizer.ggml.scores", []float32{1}, `key "tokenizer.ggml.scores": 1 entries for 266 tokens`},
		"no number":     {v: with("ab", float32(math.NaN()), 1), want: `key "tokenizer.ggml.scores": entry 266 is NaN`},
		"no types":      {least(), "tokenizer.ggml.token_type", nil, `key "tokenizer.ggml.token_type": not there`},
		"few types":     {least(), "tokenizer.ggml.token_type", []int32{1, 1}, `key "tokenizer.ggml.token_type": 2 entries for 266 tokens`},
		"named types":   {least(), "tokenizer.ggml.token_type", "normal", `key "tokenizer.ggml.token_type": 0 entries for 266 tokens`},
		"prefix":        {least(), "tokenizer.ggml.add_space_prefix", "yes", `key "tokenizer.ggml.add_space_prefix": string, want bool`},
		"no byte":       {v: without(3 + 'A'), want: `key "tokenizer.ggml.tokens": no token for 1 of 256 bytes, the first is "<0x41>"`},
		"no bytes":      {vocabulary{Tokens: []string{"a"}, Types: []int32{1}, Scores: []float32{0}}, "", nil, `no token for 256 of 256 bytes, the first is "<0x00>"`},
		"no blank":      {v: without(259), want: `key "tokenizer.ggml.tokens": no token is "▁"`},
		"twice":         {v: with("a", -1, 1), want: `key "tokenizer.ggml.tokens": token 266 is "a", as token 260`},
		"a name twice":  {v: with("</s>", -1, 1), want: `key "tokenizer.ggml.tokens": token 266 is "</s>", as token 2`},
		"a byte twice":  {v: with("<0x0A>", -1, 6), want: `token 266 is "<0x0A>", as token 13`},
		"what byte":     {v: with("<0xZZ>", -1, 6), want: `key "tokenizer.ggml.tokens": token 266 is "<0xZZ>", want a byte such as "<0x0A>"`},
		"low byte":      {v: with("<0x0a>", -1, 6), want: `token 266 is "<0x0a>", want a byte`},
		"wide byte":     {v: with("<0x0A>>", -1, 6), want: `token 266 is "<0x0A>>", want a byte`},
		"long":          {v: with(strings.Repeat("a", 300), -1, 1), want: `key "tokenizer.ggml.tokens": token 266 has 300 bytes, more than 256`},
		"not of a kind": {v: with("ab", float32(math.Inf(1)), 99)},
	} {
		t.Run(name, func(t *testing.T) {
			var more map[string]any
			if c.key != "" {
				more = map[string]any{c.key: c.put}
			}
			tok, err := bpe.FromGGUF(metadata(t, c.v.pairs(more)...))
			switch {
			case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("the error is %v, want one with %q", err, c.want)
			case err == nil && tok.Decode(tok.Encode("ab abé", true), true) != "ab abé":
				t.Error("a text came back as another")
			}
		})
	}
}

// Vocabularies of other kinds are refused by name.
func TestOtherKindsOfVocabularies(t *testing.T) {
	for _, kind := range []string{"gemma4", "bert", "t5", "rwkv", "plamo2", "no_vocab", ""} {
		_, err := bpe.FromGGUF(metadata(t, least().pairs(map[string]any{"tokenizer.ggml.model": kind})...))
		if want := fmt.Sprintf(`key "tokenizer.ggml.model": %q: not supported; want "gpt2" or "llama"`, kind); !errors.Is(
			err,
			bpe.ErrUnsupported,
		) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %s", err, want)
		}
	}
}

// Any text comes back, but for U+2581, which is a space.
func FuzzPieces(f *testing.F) {
	var list []reference
	read(f, "sentencepiece.golden.json", &list)
	for _, c := range list[0].Cases {
		f.Add(c.Text)
		f.Add(string(c.Raw))
	}
	toks := []*bpe.Tokenizer{learnt(f, true), learnt(f, false), least().tokenizer(f, nil)}
	f.Fuzz(func(t *testing.T, text string) {
		want := strings.ReplaceAll(string([]rune(text)), "\u2581", " ")
		for i, tok := range toks {
			ids := tok.Encode(text, false)
			for _, id := range append(ids, tok.Encode(text, true)...) {
				if id < 0 || int(id) >= tok.Vocab() {
					t.Fatalf("tokenizer %d: id %d of %d", i, id, tok.Vocab())
				}
			}
			if got := tok.Decode(ids, false); got != want {
				t.Fatalf("tokenizer %d: %q came back as %q", i, text, got)
			}
			if got := oneByOne(tok.Stream(false), ids); got != want || !utf8.ValidString(got) {
				t.Fatalf("tokenizer %d: %q came back one by one as %q", i, text, got)
			}
		}
	})
}

// Whatever a vocabulary says, it is read or refused; what is read can encode.
func FuzzVocabularyOfPieces(f *testing.F) {
	f.Add("ab\nba\naba\n▁a", []byte{1, 2, 3, 4}, []byte{1, 1, 1, 1})
	f.Add("é\n€é\n\n</s>x", []byte{9, 9, 0, 255}, []byte{1, 5, 1, 4})
	f.Fuzz(func(t *testing.T, words string, scores, types []byte) {
		v := least()
		for i, word := range strings.Split(words, "\n") {
			if i >= len(scores) || i >= len(types) {
				break
			}
			v.add(word, float32(int8(scores[i])), int32(types[i]))
		}
		tok, err := bpe.FromGGUF(metadata(t, v.pairs(nil)...))
		if err != nil {
			return
		}
		for _, special := range []bool{false, true} {
			for _, id := range tok.Encode(words, special) {
				if id < 0 || int(id) >= tok.Vocab() {
					t.Fatalf("id %d of %d", id, tok.Vocab())
				}
			}
		}
		want := strings.ReplaceAll(string([]rune(words)), "\u2581", " ")
		if got := tok.Decode(tok.Encode(words, false), true); got != want {
			t.Fatalf("%q came back as %q", words, got)
		}
	})
}

func BenchmarkPieces(b *testing.B) {
	tok := learnt(b, true)
	for _, n := range []int{1, 40, 1600} {
		text := strings.Repeat("The engine keeps the keys and values of the prefix it has read, and the pilot keeps the order. ", n)
		b.Run(fmt.Sprint(len(text)), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				tok.Encode(text, false)
			}
		})
	}
}
