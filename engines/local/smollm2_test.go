package local_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/local/internal/modeltest"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// What two other programs, in Python and in C++, answer from the same file.
func TestSmolLM2(t *testing.T) {
	testkit.NotUnderRace(t)
	e, err := local.Open(local.Config{Model: modeltest.SmolLM2(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	prompt := []int32{1, 4093, 198, 1780, 314, 260, 3575, 282, 4649, 47, 2, 198, 1, 520, 9531, 198}
	r, err := e.GenerateTokens(t.Context(), engines.Request{}, prompt, nil)
	if err != nil || r.Text != "The capital of France is Paris." || r.Finish != "stop" ||
		r.Usage.OutputTokens != 8 { // with the one that ends it
		t.Errorf("%+v, error %v", r, err)
	}
	chat := engines.Request{Messages: []engines.Message{{Role: engines.User, Content: "What is the capital of France?"}}}
	if r := generate(t, e, chat); !strings.Contains(r.Text, "Paris") {
		t.Errorf("in a chat, %+v", r)
	}
}

const memoryVariable = "RAGPILOT_TEST_MEMORY"

// Without its keys and values, a process with the model has at most 1.6 times the file, and 64 MiB.
func TestSmolLM2Memory(t *testing.T) {
	path := modeltest.SmolLM2(t)
	if os.Getenv(memoryVariable) != "" {
		printMemory(t, path)
		return
	}
	testkit.NotUnderRace(t)
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("needs /proc")
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSmolLM2Memory$")
	c.Env = append(os.Environ(), memoryVariable+"=1")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var resident, pool int64
	if _, err := fmt.Sscanf(string(out), "memory %d %d", &resident, &pool); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	file, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	size, rest := file.Size(), resident-pool
	t.Logf(
		"%s%.1f MB resident, of them %.1f MB keys and values: %.2f of the file and %.1f MB",
		out,
		float64(resident)/1e6,
		float64(pool)/1e6,
		float64(rest)/float64(size),
		float64(rest-size)/1e6,
	)
	if most := size*16/10 + 64<<20; rest > most {
		t.Errorf("%d bytes without keys and values, want at most %d", rest, most)
	}
}

// printMemory answers a prompt of 512 tokens and prints what is resident, and what of that is for keys and values.
func printMemory(t *testing.T, path string) {
	e, err := local.Open(local.Config{Model: path})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	prompt := e.Tokenize(strings.Repeat("The engine keeps what it has read. ", 80))[:512]
	if _, err := e.GenerateTokens(t.Context(), engines.Request{MaxTokens: 16}, prompt, nil); err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	var kilobytes int64
	_, after, _ := bytes.Cut(status, []byte("VmRSS:"))
	if _, err := fmt.Sscan(string(after), &kilobytes); err != nil {
		t.Fatal(err)
	}
	const block = 16 * 2 * 30 * 3 * 64 * 4 // tokens, keys and values, layers, heads, dimensions, bytes
	s := e.Stats()
	fmt.Printf("memory %d %d\n", kilobytes<<10, (s.UsedBlocks+s.CachedBlocks)*block)
	for line := range bytes.Lines(status) {
		if bytes.HasPrefix(line, []byte("Rss")) {
			fmt.Printf("%s", line)
		}
	}
}

// What formats of files cost: the divergence from exact keys and values of the distributions behind a prompt that was loaded.
func TestSmolLM2DiskFormats(t *testing.T) {
	testkit.NotUnderRace(t)
	model := modeltest.SmolLM2(t)
	var texts []string
	pages := []string{"policies", "serve", "langchaingo"}
	if testing.Short() {
		pages = pages[:1]
	}
	for _, name := range pages {
		data, err := os.ReadFile("../../docs/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(data[:2600]))
	}
	distributions := func(format string) (all [][]float32, bytes int64) {
		dir := t.TempDir()
		for restart := range 2 {
			e, err := local.Open(local.Config{Model: model, CacheDir: dir, DiskFormat: format})
			if err != nil {
				t.Fatal(err)
			}
			all = nil
			for _, text := range texts {
				question := engines.Request{Messages: []engines.Message{{Role: engines.User, Content: text[:2400]}}}
				if _, err := e.Score(t.Context(), question, text[2400:],
					func(_ int, logits []float32) { all = append(all, local.LogProbs(logits)) }); err != nil {
					t.Fatal(err)
				}
			}
			if s := e.Stats(); restart == 1 && s.LoadedBlocks < int64(30*len(pages)) {
				t.Errorf("%s: %+v", format, s)
			}
			bytes = e.Stats().Disk.Bytes
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		}
		return all, bytes
	}
	exact, size := distributions("f32")
	for format, most := range map[string]struct{ divergence, bytes float64 }{"f16": {0.0001, 0.51}, "int8": {0.001, 0.28}} {
		got, bytes := distributions(format)
		sum := 0.0
		for i := range exact {
			for j, p := range exact[i] {
				sum += math.Exp(float64(p)) * float64(p-got[i][j])
			}
		}
		sum /= float64(len(exact))
		share := float64(bytes) / float64(size)
		t.Logf("%s: divergence %.7f over %d tokens, %.3f of the bytes", format, sum, len(exact), share)
		if sum > most.divergence || share > most.bytes {
			t.Errorf("%s: divergence %.7f, want at most %g; %.3f of the bytes, want at most %g", format, sum, most.divergence, share, most.bytes)
		}
	}
}
