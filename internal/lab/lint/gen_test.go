package lint_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/lab/lint"
)

// words are the vocabulary of made-up texts.
var words = strings.Fields("order battery station refund contract delivery window morning river paper garden letter number colour market " +
	"bridge winter summer doctor engine mountain village kitchen answer question customer manager signal bottle candle because without " +
	"between through another several perhaps quickly slowly always never before after under over while until above below ticket animal " +
	"harbour island silver golden purple stone thunder velvet copper walnut pepper saddle lantern")[:64:64]

// prose returns a made-up text of n words, as it stands in JSON.
func prose(r *rand.Rand, n int) string {
	b := make([]byte, 0, n*8)
	var bits uint64
	for i := range n {
		if i%10 == 0 {
			bits = r.Uint64()
		}
		b = append(append(b, words[bits%64]...), ' ')
		if bits >>= 6; bits%16 == 0 {
			b = append(b, ".\\n"...)
		}
	}
	return string(b)
}

// write makes requests of about 8,000 tokens each: of some programs, with new conversations and conversations that go on. One in so many
// of the former has a clock in its system text.
func write(w io.Writer, requests, diseased int) error {
	r := rand.New(rand.NewPCG(1, 2))
	out := bufio.NewWriterSize(w, 1<<20)
	systems := make([]string, 20)
	for i := range systems {
		systems[i] = prose(r, 1500)
	}
	type conversation struct{ system, history string }
	open := make([]conversation, 50)
	for i := range requests {
		c := &open[r.IntN(len(open))]
		if c.system == "" || len(c.history) > 40_000 {
			*c = conversation{system: systems[r.IntN(len(systems))], history: `{"role":"user","content":"` + prose(r, 2500) + `"}`}
		}
		clock := ""
		if diseased > 0 && i%diseased == 0 {
			clock = fmt.Sprintf("Now it is 2026-11-27T04:%02d:%02dZ.\\n", i/60%60, i%60)
		}
		fmt.Fprintf(out, `{"model":"m","messages":[{"role":"system","content":"%s%s"},%s]}`+"\n", clock, c.system, c.history)
		c.history += `,{"role":"assistant","content":"` + prose(r, 300) + `"},{"role":"user","content":"` + prose(r, 800) + `"}`
	}
	return out.Flush()
}

// TestMany checks as many requests as RAGPILOT_LINT_REQUESTS says, in a file at RAGPILOT_LINT_FILE.
func TestMany(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("RAGPILOT_LINT_REQUESTS"))
	name := os.Getenv("RAGPILOT_LINT_FILE")
	if n == 0 || name == "" {
		t.Skip("needs RAGPILOT_LINT_REQUESTS and RAGPILOT_LINT_FILE")
	}
	if _, err := os.Stat(name); err != nil {
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		d, _ := strconv.Atoi(os.Getenv("RAGPILOT_LINT_DISEASED"))
		if err := write(f, n, d); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	s, err := lint.Run(t.Context(), []string{name}, nil, lint.Options{}, func(lint.Finding) error { return nil })
	if err != nil || s.Requests != n {
		t.Fatalf("%+v %v", s, err)
	}
	t.Logf("%+v", s)
}
