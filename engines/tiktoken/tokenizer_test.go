package tiktoken_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ragpilot/ragpilot/engines/tiktoken"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

func newTokenizer(t testing.TB, name string) *tiktoken.Tokenizer {
	t.Helper()
	return testkit.Must(tiktoken.New(name))(t)
}

// TestCount: the first rows are published counts (OpenAI's guide to counting tokens), the others follow from the
// vocabulary: common words are one token each, and digits go in threes.
func TestCount(t *testing.T) {
	cases := []struct {
		encoding, text string
		want           int
	}{
		{"cl100k_base", "antidisestablishmentarianism", 6},
		{"r50k_base", "antidisestablishmentarianism", 5},
		{"p50k_base", "antidisestablishmentarianism", 5},
		{"o200k_base", "antidisestablishmentarianism", 6},
		{"cl100k_base", "2 + 2 = 4", 7},
		{"o200k_base", "2 + 2 = 4", 7},
		{"r50k_base", "2 + 2 = 4", 5},
		{"cl100k_base", "お誕生日おめでとう", 9},
		{"o200k_base", "お誕生日おめでとう", 8},
		{"r50k_base", "お誕生日おめでとう", 14},
		{"cl100k_base", "tiktoken is great!", 6},
		{"o200k_base", "", 0},
		{"o200k_base", "hello world", 2},
		{"o200k_base", strings.Repeat(" the", 1000), 1000},
		{"o200k_base", "123456789", 3},
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%s/%.20s", c.encoding, c.text), func(t *testing.T) {
			tokenizer := newTokenizer(t, c.encoding)
			for _, when := range []string{"counted", "from the cache"} {
				if got := tokenizer.Count(c.text); got != c.want {
					t.Errorf("%s: %d tokens, want %d", when, got, c.want)
				}
			}
		})
	}
}

func TestNames(t *testing.T) {
	for model, want := range map[string]string{
		"gpt-4o":                 "o200k_base",
		"gpt-4o-mini-2024-07-18": "o200k_base",
		"gpt-4":                  "cl100k_base",
		"gpt-3.5-turbo":          "cl100k_base",
		"text-davinci-003":       "p50k_base",
		"davinci":                "r50k_base",
		"p50k_edit":              "p50k_edit",
	} {
		if got := newTokenizer(t, model).Encoding(); got != want {
			t.Errorf("%s has encoding %s, want %s", model, got, want)
		}
	}
	names := append(tiktoken.Encodings(), tiktoken.Models()...)
	for _, name := range names {
		newTokenizer(t, name)
	}
	if !slices.IsSorted(tiktoken.Encodings()) || !slices.IsSorted(tiktoken.Models()) {
		t.Error("the names are not sorted")
	}
	for _, name := range []string{"", "llama-3", "GPT-4o"} {
		_, err := tiktoken.New(name)
		if err == nil {
			t.Errorf("%q is known", name)
			continue
		}
		for _, known := range append([]string{fmt.Sprintf("%q", name)}, names...) {
			if !strings.Contains(err.Error(), known) {
				t.Errorf("error for %q does not say %s", name, known)
			}
		}
	}
}

func TestConcurrent(t *testing.T) {
	tokenizer := newTokenizer(t, "o200k_base")
	var wait sync.WaitGroup
	for g := range 8 {
		wait.Go(func() {
			for i := range 50 {
				n := 1 + (g*7+i)%60
				if got := tokenizer.Count(strings.Repeat(" the", n)); got != n {
					t.Errorf("%d tokens, want %d", got, n)
				}
			}
		})
	}
	wait.Wait()
}

// FuzzCount: any bytes have a count between 1 and their number, the same every time.
func FuzzCount(f *testing.F) {
	for _, seed := range []string{"a", "\xff\xfe", "<|endoftext|>", "日本\xc3", strings.Repeat("ab", 60), "\r\n \t"} {
		f.Add(seed)
	}
	tokenizer := newTokenizer(f, "o200k_base")
	f.Fuzz(func(t *testing.T, text string) {
		n := tokenizer.Count(text)
		// A broken sequence may be counted as the replacement character, which is three bytes.
		if text != "" && (n < 1 || n > 3*len(text)) || text == "" && n != 0 {
			t.Errorf("%q has %d tokens", text, n)
		}
		if again := tokenizer.Count(text); again != n {
			t.Errorf("%q has %d tokens, then %d", text, n, again)
		}
	})
}

func BenchmarkCount(b *testing.B) {
	tokenizer := newTokenizer(b, "o200k_base")
	for _, words := range []int{50, 500} {
		text := strings.Repeat("the quick brown fox, ", words/4)
		b.Run(fmt.Sprintf("words=%d/cached", words), func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					tokenizer.Count(text)
				}
			})
		})
		b.Run(fmt.Sprintf("words=%d/new", words), func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				tokenizer.Count(fmt.Sprint(text, i))
			}
		})
	}
}
