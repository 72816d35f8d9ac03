package bpe_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines/local/internal/bpe"
)

// step is a part of a tokenizer.json.
type step map[string]any

var (
	prepend      = step{"type": "Prepend", "prepend": "▁"}
	replace      = step{"type": "Replace", "pattern": step{"String": " "}, "content": "▁"}
	decoderSteps = []step{
		{"type": "Replace", "pattern": step{"String": "▁"}, "content": " "},
		{"type": "ByteFallback"},
		{"type": "Fuse"},
		{"type": "Strip", "content": " ", "start": 1, "stop": 0},
	}
)

// llama2 is a vocabulary as the tokenizer.json of Llama 2 has it, with the parts that patch replaces.
func llama2(t testing.TB, v vocabulary, patch func(doc, model step)) []byte {
	t.Helper()
	vocab, added := map[string]int{}, []step{}
	for id, text := range v.Tokens {
		switch v.Types[id] {
		case 2, 3:
			added = append(added, step{"id": id, "content": text, "special": true})
		case 4:
			added = append(added, step{"id": id, "content": text})
			continue
		}
		vocab[text] = id
	}
	model := step{
		"type": "BPE", "byte_fallback": true, "fuse_unk": true, "unk_token": "<unk>", "ignore_merges": false, "vocab": vocab, "merges": merges(v),
	}
	doc := step{
		"added_tokens": added, "pre_tokenizer": nil, "model": model,
		"normalizer": step{"type": "Sequence", "normalizers": []step{prepend, replace}},
		"decoder":    step{"type": "Sequence", "decoders": decoderSteps},
		"post_processor": step{"type": "TemplateProcessing", "single": []step{
			{"SpecialToken": step{"id": "<s>", "type_id": 0}}, {"Sequence": step{"id": "A", "type_id": 0}},
		}},
	}
	if patch != nil {
		patch(doc, model)
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// merges are the pairs of tokens that are a token together, in the order of transformers' converter: by the score of what they
// become, then by their ids.
func merges(v vocabulary) [][2]string {
	ids := map[string]int{}
	for id, text := range v.Tokens {
		if v.Types[id] == 1 {
			ids[text] = id
		}
	}
	type pair struct {
		left, right int
		score       float32
	}
	var list []pair
	for text, id := range ids {
		for at := range text {
			left, okL := ids[text[:at]]
			right, okR := ids[text[at:]]
			if okL && okR {
				list = append(list, pair{left, right, v.Scores[id]})
			}
		}
	}
	slices.SortFunc(list, func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.left, b.left), cmp.Compare(a.right, b.right))
	})
	out := make([][2]string, len(list))
	for i, p := range list {
		out[i] = [2]string{v.Tokens[p.left], v.Tokens[p.right]}
	}
	return out
}

// A folder has the same tokens as a GGUF file. Merges are in one order there and cannot have the same score, and characters
// that are no tokens are in none.
func TestTheSameTokensInAFolder(t *testing.T) {
	var v vocabulary
	read(t, "../../tinymodel/testdata/sentencepiece.json", &v)
	for _, prefix := range []bool{true, false} {
		tok, err := bpe.FromJSON(llama2(t, v, func(doc, _ step) {
			if !prefix {
				doc["normalizer"], doc["decoder"] = replace, step{"type": "Sequence", "decoders": decoderSteps[:3]}
			}
		}))
		if err != nil {
			t.Fatal(err)
		}
		if id, ok := tok.First(); id != 1 || !ok || !tok.SentencePiece() || tok.Vocab() != len(v.Tokens) {
			t.Errorf("texts begin with %d, %v; %d tokens", id, ok, tok.Vocab())
		}
		var list []reference
		read(t, "sentencepiece.golden.json", &list)
		i := slices.IndexFunc(list, func(r reference) bool { return r.Prefix == prefix })
		compared := 0
		for _, c := range list[i].Cases {
			if strings.ContainsAny(c.Text, "ⴰⴱⴲⴳ") || strings.Contains(c.Text, "vj") || c.IDs == nil {
				continue
			}
			compared++
			if ids := tok.Encode(c.Text+string(c.Raw), false); !slices.Equal(ids, c.IDs) {
				t.Errorf("%q is\n%v, want\n%v", c.Text, ids, c.IDs)
			}
			if ids := tok.Encode(c.Text+string(c.Raw), true); !slices.Equal(ids, c.Special) {
				t.Errorf("%q with special tokens is\n%v, want\n%v", c.Text, ids, c.Special)
			}
			same(t, tok, c.IDs, true, c.Decoded)
			same(t, tok, c.Special, false, c.Bare)
		}
		if compared < 30 {
			t.Errorf("%d texts compared", compared)
		}
	}
}

func TestFoldersOfPiecesThatAreRefused(t *testing.T) {
	v := least()
	for name, c := range map[string]struct {
		patch func(doc, model step)
		want  string
	}{
		"metaspace": {func(d, _ step) { d["pre_tokenizer"] = step{"type": "Metaspace"} }, `pre_tokenizer "Metaspace" with model.byte_fallback`},
		"none":      {func(d, _ step) { d["normalizer"] = nil }, `normalizer [] with model.byte_fallback`},
		"lowercase": {func(d, _ step) { d["normalizer"] = step{"type": "Lowercase"} }, `normalizer ["Lowercase"] with model.byte_fallback`},
		"three": {func(d, _ step) {
			d["normalizer"] = step{"type": "Sequence", "normalizers": []step{prepend, replace, {"type": "NFC"}}}
		}, `normalizer ["Prepend" "Replace" "NFC"]`},
		"other space": {func(d, _ step) {
			d["normalizer"] = step{"type": "Replace", "pattern": step{"String": " "}, "content": "_"}
		}, `normalizer ["Replace"]`},
		"decoder":       {func(d, _ step) { d["decoder"] = step{"type": "ByteLevel"} }, `decoder ["ByteLevel"] with model.byte_fallback`},
		"whole words":   {func(_, m step) { m["ignore_merges"] = true }, "model.ignore_merges with model.byte_fallback"},
		"no byte":       {func(_, m step) { delete(m["vocab"].(map[string]int), "<0x41>") }, `model.vocab: no token for 1 of 256 bytes, the first is "<0x41>"`},
		"no blank":      {func(_, m step) { delete(m["vocab"].(map[string]int), "▁") }, `model.vocab: no token is "▁"`},
		"unknown merge": {func(_, m step) { m["merges"] = []string{"a zz"} }, `merge 0, "a" and "zz"`},
		"id":            {func(_, m step) { m["vocab"].(map[string]int)["a"] = -1 }, `token "a": id -1`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := bpe.FromJSON(llama2(t, v, c.patch))
			refused := strings.Contains(c.want, "with model.byte_fallback")
			if err == nil || !strings.Contains(err.Error(), c.want) || refused && !errors.Is(err, bpe.ErrUnsupported) {
				t.Errorf("the error is %v, want one with %s", err, c.want)
			}
		})
	}
}

// Not even merges that lead to the name of a special token make it of ordinary text.
func TestMergesToSpecialTokensInAFolder(t *testing.T) {
	v := least()
	v.add("</", -1, 1)
	v.add("s>", -1, 1)
	v.add("<0x", -1, 1)
	tok, err := bpe.FromJSON(llama2(t, v, func(_, m step) {
		m["merges"] = []string{"< /", "s >", "</ s>"}
	}))
	if err != nil {
		t.Fatal(err)
	}
	if ids := tok.Encode("a</s>", false); slices.Contains(ids, 2) || tok.Decode(ids, false) != "a</s>" {
		t.Errorf("ordinary text is %v", ids)
	}
	if ids := tok.Encode("a</s>", true); ids[len(ids)-1] != 2 {
		t.Errorf("by its name, </s> is missing from %v", ids)
	}
}
