package bpe_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/engines/local/internal/bpe"
	"github.com/ragpilot/ragpilot/engines/local/internal/gguf"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// golden is what Hugging Face's tokenizers make of texts, with the way of splitting that has the name in GGUF files. The file has the
// settings of the reference, too.
type golden struct {
	Name  string       `json:"name"`
	Cases []goldenCase `json:"cases"`
}

type goldenCase struct {
	Text string `json:"text"`
	Raw  []byte `json:"raw"` // in the place of Text: no UTF-8
	// IDs are those of ordinary text; Special those with names of special tokens, nil: the same.
	IDs     []int32 `json:"ids"`
	Special []int32 `json:"special"`
	// Decoded is the text of IDs, nil: Text.
	Decoded *string `json:"decoded"`
}

func read(t testing.TB, name string, into any) {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
}

// byteLevel reads the vocabulary as one of bytes, with a way of splitting.
func (v vocabulary) byteLevel(t testing.TB, split string) *bpe.Tokenizer {
	t.Helper()
	return testkit.Must(bpe.FromGGUF(metadata(t, v.byteLevelPairs(map[string]any{"tokenizer.ggml.pre": split})...)))(t)
}

// byteLevelPairs are the lines of a GGUF file, as pairs has them.
func (v vocabulary) byteLevelPairs(more map[string]any) []gguf.Pair {
	lines := map[string]any{
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "smollm", "tokenizer.ggml.merges": v.Merges, "tokenizer.ggml.scores": nil,
	}
	maps.Copy(lines, more)
	return v.pairs(lines)
}

// small is a vocabulary of 421 tokens.
func small(t testing.TB) (v vocabulary) {
	t.Helper()
	read(t, "small.json", &v)
	return v
}

func (g golden) check(t *testing.T, tok *bpe.Tokenizer) {
	t.Helper()
	for _, c := range g.Cases {
		text := c.Text
		if c.Raw != nil {
			text = string(c.Raw)
		}
		ids := tok.Encode(text, false)
		if !slices.Equal(ids, c.IDs) {
			t.Errorf("%q is\n%v, want\n%v", text, ids, c.IDs)
			continue
		}
		if n := tok.Count(text); n != len(c.IDs) {
			t.Errorf("Count(%q) = %d, want %d", text, n, len(c.IDs))
		}
		want := c.Special
		if want == nil {
			want = c.IDs
		}
		if ids := tok.Encode(text, true); !slices.Equal(ids, want) {
			t.Errorf("%q with special tokens is\n%v, want\n%v", text, ids, want)
		}
		decoded := strings.ToValidUTF8(text, "")
		if c.Decoded != nil {
			decoded = *c.Decoded
		} else if c.Raw != nil {
			decoded = string([]rune(text))
		}
		if got := tok.Decode(c.IDs, true); got != decoded {
			t.Errorf("%v is %q, want %q", c.IDs, got, decoded)
		}
		stream, got := tok.Stream(true), ""
		for _, id := range c.IDs {
			got += stream.Next(id)
		}
		if got += stream.End(); got != decoded {
			t.Errorf("%v is, one by one, %q, want %q", c.IDs, got, decoded)
		}
	}
}

func TestAsTheReferenceSplitsAndMerges(t *testing.T) {
	var list []golden
	read(t, "small.golden.json", &list)
	for _, g := range list {
		t.Run(g.Name, func(t *testing.T) {
			tok := small(t).byteLevel(t, g.Name)
			if got := tok.Splitter().String(); got != g.Name {
				t.Fatalf("the splitter is %s, want %s", got, g.Name)
			}
			g.check(t, tok)
		})
	}
}

func TestSpecialTokens(t *testing.T) {
	tok := small(t).byteLevel(t, "smollm")
	end, ok := tok.ID("<|im_end|>")
	if !ok || !tok.Special(end) {
		t.Fatalf("<|im_end|> is %d, %v, special %v", end, ok, tok.Special(end))
	}
	think, ok := tok.ID("<think>")
	if !ok || tok.Special(think) {
		t.Fatalf("<think> is %d, %v, special %v", think, ok, tok.Special(think))
	}
	if ids := tok.Encode("<|im_end|>", false); slices.Contains(ids, end) || tok.Decode(ids, false) != "<|im_end|>" {
		t.Errorf("as ordinary text, <|im_end|> is %v", ids)
	}
	ids := tok.Encode("<think>a<|im_end|>", true)
	if got := tok.Decode(ids, false); got != "<think>a" {
		t.Errorf("without special tokens, the text is %q", got)
	}
	if got := tok.Decode(append(ids, -1, int32(tok.Vocab()), 1<<30), true); got != "<think>a<|im_end|>" {
		t.Errorf("with special tokens and unknown ids, the text is %q", got)
	}
}

// A word of a megabyte: in seconds, and the same tokens as in pieces where the pieces cannot merge.
func TestAVeryLongWord(t *testing.T) {
	testkit.NotUnderRace(t)
	tok := small(t).byteLevel(t, "smollm")
	for _, word := range []string{"a", "theblock", "\u0301é", "="} {
		text := strings.Repeat(word, 1<<20/len(word))
		ids := tok.Encode(text, false)
		if got := tok.Decode(ids, false); got != text {
			t.Errorf("a long word of %q came back as another of %d bytes", word, len(got))
		}
	}
}

func TestLongAndShortWordsMergeAlike(t *testing.T) {
	tok := small(t).byteLevel(t, "smollm")
	alphabet := []string{"a", "b", "e", "t", "h", "th", "the", "in", "o", "r", "s", "é", "м", "天"}
	rapid.Check(t, func(t *rapid.T) {
		word := strings.Join(rapid.SliceOfN(rapid.SampledFrom(alphabet), 1, 80).Draw(t, "parts"), "")
		short, long := bpe.MergeBoth(tok, word)
		if !slices.Equal(short, long) {
			t.Fatalf("%q: %v in the short way, %v in the long", word, short, long)
		}
	})
}

func TestWordsAreTheText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		for _, split := range []bpe.Splitter{bpe.GPT2, bpe.SmolLM, bpe.Llama3, bpe.Qwen2} {
			words := bpe.Words(split, text)
			if strings.Join(words, "") != text || slices.Contains(words, "") {
				t.Fatalf("%v splits %q into %q", split, text, words)
			}
		}
	})
}

// What one goroutine at a time does, many do.
func TestConcurrentUse(t *testing.T) {
	tok := small(t).byteLevel(t, "smollm")
	want := tok.Encode("The pilot keeps the order.", true)
	done := make(chan bool)
	for range 8 {
		go func() {
			same := true
			for range 50 {
				same = same && slices.Equal(tok.Encode("The pilot keeps the order.", true), want)
			}
			done <- same
		}()
	}
	for range 8 {
		if !<-done {
			t.Error("tokens differ between goroutines")
		}
	}
}

func FuzzRoundTrip(f *testing.F) {
	var list []golden
	read(f, "small.golden.json", &list)
	toks := make([]*bpe.Tokenizer, len(list))
	for i, g := range list {
		toks[i] = small(f).byteLevel(f, g.Name)
		for _, c := range g.Cases {
			f.Add(c.Text)
			f.Add(string(c.Raw))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		for i, tok := range toks {
			want := string([]rune(text))
			if list[i].Name == "qwen2" {
				want = norm.NFC.String(want)
			}
			ids := tok.Encode(text, false)
			if got := tok.Decode(ids, false); got != want {
				t.Fatalf("%s: %q came back as %q", list[i].Name, text, got)
			}
			stream, got := tok.Stream(true), ""
			for _, id := range ids {
				piece := stream.Next(id)
				if !utf8.ValidString(piece) {
					t.Fatalf("%s: the stream gave %q", list[i].Name, piece)
				}
				got += piece
			}
			if got += stream.End(); got != want {
				t.Fatalf("%s: %q came back one by one as %q", list[i].Name, text, got)
			}
			if got := tok.Decode(tok.Encode(text, true), true); got != want {
				t.Fatalf("%s: %q with special tokens came back as %q", list[i].Name, text, got)
			}
		}
	})
}

// Any tokens can be decoded, at once or one by one, and give the same valid text.
func FuzzDecode(f *testing.F) {
	tok := small(f).byteLevel(f, "smollm")
	f.Add([]byte{0xe2, 0x82, 0xac, 0xf0, 0x9f})
	f.Fuzz(func(t *testing.T, raw []byte) {
		ids := make([]int32, len(raw))
		for i, b := range raw {
			ids[i] = int32(b)*2 - 1
		}
		want := tok.Decode(ids, true)
		stream, got := tok.Stream(true), ""
		for _, id := range ids {
			got += stream.Next(id)
		}
		if got += stream.End(); got != want || !utf8.ValidString(got) {
			t.Fatalf("%v: %q at once, %q one by one", ids, want, got)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	tok := small(b).byteLevel(b, "smollm")
	for name, text := range map[string]string{
		"prose": strings.Repeat("The engine keeps the keys and values of the prefix it has read, and the pilot keeps the order. ", 40),
		"word":  strings.Repeat("theblock", 500),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				tok.Encode(text, false)
			}
		})
	}
}
