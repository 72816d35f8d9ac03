package bpe_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"github.com/ragpilot/ragpilot/engines/local/internal/bpe"
	"github.com/ragpilot/ragpilot/engines/local/internal/gguf"
)

// Bytes that have no token are left out.
func TestMissingBytes(t *testing.T) {
	v := small(t)
	v.Types[slices.Index(v.Tokens, "z")] = 5
	tok := v.byteLevel(t, "smollm")
	if ids := tok.Encode("azz1zz", false); tok.Decode(ids, true) != "a1" || len(ids) != 2 {
		t.Errorf("the tokens are %v", ids)
	}
	if got := tok.Missing(); !bytes.Equal(got, []byte("z")) {
		t.Errorf("bytes without a token are %q", got)
	}
}

func metadata(t testing.TB, pairs ...gguf.Pair) map[string]gguf.Value {
	t.Helper()
	var buf bytes.Buffer
	if err := gguf.Write(&buf, pairs, nil); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(buf.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f.Metadata
}

func TestBrokenVocabulariesOfBytes(t *testing.T) {
	v := vocabulary{Tokens: []string{"a", "b", "ab", "<s>", "ac", "cb"}, Types: []int32{1, 1, 1, 3, 1, 1}, Merges: []string{"a b"}}
	for name, c := range map[string]struct {
		key   string
		value any
		want  string
	}{
		"sound":      {"x", "y", ""},
		"split":      {"tokenizer.ggml.pre", "tekken", `key "tokenizer.ggml.pre": "tekken": not supported`},
		"no split":   {"tokenizer.ggml.pre", nil, `key "tokenizer.ggml.pre": "": not supported`},
		"no types":   {"tokenizer.ggml.token_type", nil, ""},
		"types":      {"tokenizer.ggml.token_type", []int32{1}, "1 entries for 6 tokens"},
		"tokens":     {"tokenizer.ggml.tokens", "none", `key "tokenizer.ggml.tokens": not there, or no array of strings`},
		"names only": {"tokenizer.ggml.token_type", []int32{3, 3, 3, 3, 3, 3}, "the vocabulary lacks one of them"},
		"no merges":  {"tokenizer.ggml.merges", nil, `key "tokenizer.ggml.merges": not there, or no array of strings`},
		"left":       {"tokenizer.ggml.merges", []string{"c b"}, `merge 0, "c" and "b": the vocabulary lacks one of them`},
		"right":      {"tokenizer.ggml.merges", []string{"a c"}, `merge 0, "a" and "c": the vocabulary lacks one of them`},
		"together":   {"tokenizer.ggml.merges", []string{"b a"}, "lacks one of them or both together"},
		"a name":     {"tokenizer.ggml.merges", []string{"a b", "a <s>"}, `merge 1, "a" and "<s>"`},
		"half":       {"tokenizer.ggml.merges", []string{"a b", "a"}, `merge 1 is "a", want two tokens`},
		"three":      {"tokenizer.ggml.merges", []string{"a b c"}, `merge 0, "a" and "b c"`},
		"empty":      {"tokenizer.ggml.merges", []string{" b"}, "merge 0"},
		"no spelled": {"tokenizer.ggml.merges", []string{"a \u2603"}, "not spelled as bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			tok, err := bpe.FromGGUF(metadata(t, v.byteLevelPairs(map[string]any{c.key: c.value})...))
			switch {
			case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("the error is %v, want one with %q", err, c.want)
			case strings.Contains(c.want, "not supported") && !errors.Is(err, bpe.ErrUnsupported):
				t.Errorf("%v is no ErrUnsupported", err)
			case err == nil && !slices.Equal(tok.Encode("abxba", false), []int32{2, 1, 0}):
				t.Errorf("the tokens are %v", tok.Encode("abxba", false))
			}
		})
	}
	names := vocabulary{Tokens: []string{"<s>"}, Types: []int32{3}, Merges: []string{}}
	_, err := bpe.FromGGUF(metadata(t, names.byteLevelPairs(nil)...))
	if err == nil || !strings.Contains(err.Error(), "no token is a single byte") {
		t.Errorf("without a byte: %v", err)
	}
}

// Whatever a vocabulary says, it is read or refused; what is read can encode.
func FuzzVocabularyOfBytes(f *testing.F) {
	splits := []string{"gpt-2", "smollm", "llama-bpe", "qwen2"}
	v := small(f)
	f.Add("ab\nba\naba", "a b\nb a\na ba", []byte{1, 1, 1}, byte(0))
	f.Add("Ġa\n<|im_end|>\né\n\nb", "Ġ a\nà ¤", []byte{1, 4, 1, 5, 6}, byte(2))
	f.Fuzz(func(t *testing.T, words, merges string, types []byte, split byte) {
		v := vocabulary{Tokens: slices.Clip(v.Tokens), Types: slices.Clip(v.Types), Merges: slices.Clip(v.Merges)}
		for i, word := range strings.Split(words, "\n") {
			if i >= len(types) {
				break
			}
			v.add(word, 0, int32(types[i]))
		}
		if merges != "" {
			v.Merges = append(v.Merges, strings.Split(merges, "\n")...)
		}
		more := map[string]any{"tokenizer.ggml.pre": splits[int(split)%len(splits)]}
		tok, err := bpe.FromGGUF(metadata(t, v.byteLevelPairs(more)...))
		if err != nil {
			return
		}
		for _, special := range []bool{false, true} {
			for _, id := range tok.Encode(words+" ab <|im_end|> é 12", special) {
				if id < 0 || int(id) >= tok.Vocab() {
					t.Fatalf("id %d of %d", id, tok.Vocab())
				}
			}
		}
		want := string([]rune(words))
		if tok.Splitter() == bpe.Qwen2 {
			want = norm.NFC.String(want)
		}
		if got := tok.Decode(tok.Encode(words, false), true); got != want {
			t.Fatalf("%q came back as %q", words, got)
		}
	})
}
