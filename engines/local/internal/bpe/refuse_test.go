package bpe_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines/local/internal/bpe"
	"github.com/ragpilot/ragpilot/engines/local/internal/gguf"
)

// What is not supported is refused by its name: nothing that changes ids is skipped.
func TestUnsupportedFilesAreRefused(t *testing.T) {
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	cases := map[string]struct {
		patch func(doc map[string]json.RawMessage, model map[string]any)
		want  string
	}{
		"model": {func(_ map[string]json.RawMessage, m map[string]any) { m["type"] = "Unigram" }, `model.type "Unigram"`},
		"fallback": {
			func(_ map[string]json.RawMessage, m map[string]any) { m["byte_fallback"] = true },
			`pre_tokenizer "Sequence" with model.byte_fallback`,
		},
		"dropout":   {func(_ map[string]json.RawMessage, m map[string]any) { m["dropout"] = .1 }, "dropout 0.1"},
		"prefix":    {func(_ map[string]json.RawMessage, m map[string]any) { m["continuing_subword_prefix"] = "##" }, `"##"`},
		"suffix":    {func(_ map[string]json.RawMessage, m map[string]any) { m["end_of_word_suffix"] = "</w>" }, `"</w>"`},
		"none":      {func(d map[string]json.RawMessage, _ map[string]any) { d["pre_tokenizer"] = raw(`null`) }, "pre_tokenizer"},
		"metaspace": {func(d map[string]json.RawMessage, _ map[string]any) { d["pre_tokenizer"] = raw(`{"type":"Metaspace"}`) }, "Metaspace"},
		"space": {func(d map[string]json.RawMessage, _ map[string]any) {
			d["pre_tokenizer"] = raw(`{"type":"ByteLevel","add_prefix_space":true}`)
		}, "add_prefix_space"},
		"expression": {func(d map[string]json.RawMessage, _ map[string]any) {
			d["pre_tokenizer"] = raw(
				`{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"\\w+"},"behavior":"Isolated"},{"type":"ByteLevel","use_regex":false}]}`,
			)
		}, `\\w+`},
		"normalizer": {func(d map[string]json.RawMessage, _ map[string]any) { d["normalizer"] = raw(`{"type":"Lowercase"}`) }, "Lowercase"},
		"decoder":    {func(d map[string]json.RawMessage, _ map[string]any) { d["decoder"] = raw(`{"type":"WordPiece"}`) }, "WordPiece"},
		"strip": {func(d map[string]json.RawMessage, _ map[string]any) {
			d["added_tokens"] = raw(`[{"id":1,"content":"<x>","lstrip":true}]`)
		}, `"<x>"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := bpe.FromJSON(smallJSON(t, c.patch))
			if !errors.Is(err, bpe.ErrUnsupported) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want one with %s", err, c.want)
			}
		})
	}
}

func TestBrokenVocabulariesAreRefused(t *testing.T) {
	vocab := func(m map[string]any) map[string]any { return m["vocab"].(map[string]any) }
	cases := map[string]struct {
		patch func(doc map[string]json.RawMessage, model map[string]any)
		want  string
	}{
		"far id":      {func(_ map[string]json.RawMessage, m map[string]any) { vocab(m)["a"] = int64(1 << 40) }, "id 1099511627776"},
		"negative id": {func(_ map[string]json.RawMessage, m map[string]any) { vocab(m)["a"] = -1 }, "id -1"},
		"id twice":    {func(_ map[string]json.RawMessage, m map[string]any) { vocab(m)["a"] = vocab(m)["b"] }, "another token's"},
		"merge":       {func(_ map[string]json.RawMessage, m map[string]any) { m["merges"] = []any{"a zzz"} }, `"zzz"`},
		"no merge":    {func(_ map[string]json.RawMessage, m map[string]any) { m["merges"] = []any{"ab"} }, `"ab"`},
		"three":       {func(_ map[string]json.RawMessage, m map[string]any) { m["merges"] = []any{[]string{"a b", "c"}} }, `"a b"`},
		"unknown":     {func(_ map[string]json.RawMessage, m map[string]any) { m["unk_token"] = "none" }, `"none"`},
		"no bytes": {func(_ map[string]json.RawMessage, m map[string]any) {
			m["vocab"], m["merges"] = map[string]any{}, []any{}
		}, "single byte"},
		"not a number": {func(_ map[string]json.RawMessage, m map[string]any) { vocab(m)["a"] = "x" }, "tokenizer.json"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := bpe.FromJSON(smallJSON(t, c.patch)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want one with %s", err, c.want)
			}
		})
	}
}

// unk_token stands for bytes that have no token; without one they are left out.
func TestUnknownBytes(t *testing.T) {
	for name, c := range map[string]struct {
		patch map[string]any
		want  int
	}{
		"left out": {nil, 2}, "each": {map[string]any{"unk_token": "b"}, 6}, "fused": {map[string]any{"unk_token": "b", "fuse_unk": true}, 4},
	} {
		tok := small(t, func(_ map[string]json.RawMessage, m map[string]any) {
			delete(m["vocab"].(map[string]any), "z")
			maps.Copy(m, c.patch)
		})
		if ids := tok.Encode("azz1zz", false); len(ids) != c.want {
			t.Errorf("%s: %v, want %d tokens", name, ids, c.want)
		}
		if got := tok.Missing(); !bytes.Equal(got, []byte("z")) {
			t.Errorf("%s: bytes without a token are %q", name, got)
		}
	}
}

func TestFirstToken(t *testing.T) {
	tok := small(t, func(d map[string]json.RawMessage, _ map[string]any) {
		d["post_processor"] = json.RawMessage(
			`{"type":"Sequence","processors":[{"type":"ByteLevel"},{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<|im_start|>"}},{"Sequence":{"id":"A"}}]}]}`,
		)
	})
	want, _ := tok.ID("<|im_start|>")
	if id, ok := tok.First(); id != want || !ok {
		t.Errorf("texts begin with %d, %v, want %d", id, ok, want)
	}
	if id, ok := small(t, nil).First(); ok {
		t.Errorf("texts begin with %d", id)
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

func TestBrokenGGUFVocabularies(t *testing.T) {
	base := map[string]any{
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.tokens": []string{"a", "b", "ab", "<s>"},
		"tokenizer.ggml.token_type": []int32{1, 1, 1, 3}, "tokenizer.ggml.merges": []string{"a b"},
	}
	cases := map[string]struct {
		key   string
		value any
		want  string
	}{
		"sound":      {"x", "y", ""},
		"model":      {"tokenizer.ggml.model", "bert", `"bert": not supported`},
		"split":      {"tokenizer.ggml.pre", "tekken", `"tekken"`},
		"types":      {"tokenizer.ggml.token_type", []int32{1}, "1 entries for 4 tokens"},
		"tokens":     {"tokenizer.ggml.tokens", "none", `"tokenizer.ggml.tokens"`},
		"merge":      {"tokenizer.ggml.merges", []string{"a c"}, "merge 0"},
		"half":       {"tokenizer.ggml.merges", []string{"a b", "a"}, "merge 1"},
		"empty":      {"tokenizer.ggml.merges", []string{" b"}, "merge 0"},
		"no spelled": {"tokenizer.ggml.merges", []string{"a \u2603"}, "merge 0"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var pairs []gguf.Pair
			for key, value := range base {
				if key == c.key {
					value = c.value
				}
				pairs = append(pairs, gguf.Pair{Key: key, Value: value})
			}
			_, err := bpe.FromGGUF(metadata(t, pairs...))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("the error is %v, want one with %q", err, c.want)
			}
		})
	}
}

// Whatever a tokenizer.json says, it is read or refused; what is read can encode.
func FuzzFromJSON(f *testing.F) {
	f.Add(smallJSON(f, nil))
	f.Add(llama2(f, least(), nil))
	f.Add([]byte(`{"pre_tokenizer":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		tok, err := bpe.FromJSON(raw)
		if err != nil {
			return
		}
		for _, id := range tok.Encode("ab <|im_end|> é 12", true) {
			if id < 0 || int(id) >= tok.Vocab() {
				t.Fatalf("id %d of %d", id, tok.Vocab())
			}
		}
	})
}
