package docs_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of tiers.md again")

// tierRow is a row of a table of tiers.md: what is compared in docs/load/tiers/FILE.txt, and what the paper has for it.
type tierRow struct{ what, file, arm, paper string }

// TestTiersFigures: the tables of tiers.md hold what docs/load/tiers.sh has printed.
func TestTiersFigures(t *testing.T) {
	var text strings.Builder
	text.WriteString("| peak throughput | paper | here | mean TTFT here |\n|---|---|---|---|\n")
	for _, r := range []tierRow{
		{"fast copies (Strata-IO over HiCache, Fig. 9)", "ideas", "gpu/32/fifo", "up to 2.3"},
		{"the order alone, slow copies (Fig. 9)", "ideas", "dma/32/defer+balance+bubble", "up to 1.8"},
		{"· deferral alone", "ideas", "dma/32/defer", ""},
		{"· balanced batches alone", "ideas", "dma/32/balance", ""},
		{"· bubbles alone", "ideas", "dma/32/bubble", ""},
		{"· longest prefix first alone", "ideas", "dma/32/lpm", ""},
		{"both, over HiCache (Fig. 8: at the same TTFT)", "ideas", "gpu/32/defer+balance+bubble", "up to 3.9"},
		{"minimal distance: deferral (Fig. 11)", "minimal-deferral", "none/32/defer", "1.42"},
		{"shuffled: fast copies", "shuffled-copies", "gpu/32/fifo", "1.76"},
		{"maximal: fast copies", "maximal-copies", "gpu/32/fifo", "1.95"},
		{"shuffled: balanced batches on top", "shuffled-batches", "gpu/32/defer+balance", "1.11"},
		{"maximal: balanced batches on top", "maximal-batches", "gpu/32/defer+balance", "1.12"},
		{"shuffled: bubbles on top", "shuffled-bubbles", "gpu/32/defer+balance+bubble", "1.08"},
		{"maximal: bubbles on top", "maximal-bubbles", "gpu/32/defer+balance+bubble", "1.03"},
		{"slow copies, pages of 16 tokens over a kernel (Fig. 10)", "page-16", "dma/16/fifo", ""},
		{"· 32", "page-32", "dma/32/fifo", ""},
		{"· 128", "page-128", "dma/128/fifo", ""},
		{"· 512, the best", "page-512", "dma/512/fifo", "0.93"},
	} {
		cells := tierCells(t, r.file, r.arm)
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", r.what, r.paper, cells[6], cells[3])
	}
	text.WriteString("\nThe largest rate at which the 95th percentile of TTFT is within 10 s, compared with slow copies and `fifo`:\n\n" +
		"| machine | workload | the order | fast copies | both | paper, both |\n|---|---|---|---|---|---|\n")
	for _, r := range []struct{ name, machine, workload, paper string }{
		{"H200, Llama-3.1-8B", "h200-llama-3.1-8b", "loogle", "up to 3.2"},
		{"", "h200-llama-3.1-8b", "narrativeqa", ""},
		{"", "h200-llama-3.1-8b", "reviewmt", "1.7"},
		{"H200, Qwen2.5-14B", "h200-qwen2.5-14b", "loogle", "up to 3.9"},
		{"", "h200-qwen2.5-14b", "narrativeqa", ""},
		{"", "h200-qwen2.5-14b", "reviewmt", ""},
		{"4 × H200, Llama-3.1-70B", "h200x4-llama-3.1-70b", "loogle", "up to 5"},
		{"", "h200x4-llama-3.1-70b", "narrativeqa", ""},
		{"", "h200x4-llama-3.1-70b", "reviewmt", ""},
		{"GH200, Llama-3.1-8B", "gh200-llama-3.1-8b", "loogle", ""},
		{"", "gh200-llama-3.1-8b", "narrativeqa", ""},
		{"", "gh200-llama-3.1-8b", "reviewmt", ""},
	} {
		of := func(arm string) string { return tierCells(t, r.workload+"-"+r.machine, arm)[2] }
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %s | %s |\n", r.name, r.workload, of("dma/32/defer+balance+bubble"), of("gpu/32/fifo"),
			of("gpu/32/defer+balance+bubble"), r.paper)
	}
	const begin, end = "<!-- tiers: begin -->\n", "<!-- tiers: end -->\n"
	got := marked(t, "tiers.md", begin, end)
	if *update {
		raw, err := os.ReadFile("tiers.md")
		if err != nil {
			t.Fatal(err)
		}
		page := strings.Replace(string(raw), begin+got+end, begin+text.String()+end, 1)
		if err := os.WriteFile("tiers.md", []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != text.String() {
		t.Errorf("tiers.md has other figures than docs/load/tiers (see -update). Want:\n%s", &text)
	}
}

var cellGap = regexp.MustCompile(`\s{2,}`)

// tierCells returns the cells of a setup's row.
func tierCells(t *testing.T, file, arm string) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("load", "tiers", file+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		cells := cellGap.Split(strings.TrimSpace(line), -1)
		if len(cells) == 3 && cells[0] == arm || len(cells) == 10 && cells[1] == arm {
			return cells
		}
	}
	t.Fatalf("%s has no row for %s", file, arm)
	return nil
}
