package batch

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/batch/table"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// randomTemplate draws a text that names each of some columns once, and maybe the others by {{*}}.
func randomTemplate(r *rapid.T, columns []string) (text string, named []string) {
	rest := rapid.Permutation(columns).Draw(r, "order")
	take := rapid.IntRange(0, len(rest)).Draw(r, "named")
	var lines []string
	for _, c := range rest[:take] {
		named = append(named, c)
		lines = append(lines, rapid.SampledFrom([]string{"{{%s}}", "x {{ %s }}", `{{"%s"}} {"a": {"b": 1}}`, "{{%s}}\n", "{{{{%[1]s}} {{%[1]s}}."}).
			Draw(r, "line"))
		lines[len(lines)-1] = fmt.Sprintf(lines[len(lines)-1], c)
	}
	if take == 0 || rapid.Bool().Draw(r, "all") {
		named = columns
		lines = slices.Insert(lines, rapid.IntRange(0, len(lines)).Draw(r, "at"), "{{*}}")
	}
	if rapid.Bool().Draw(r, "between") {
		lines = slices.Insert(lines, rapid.IntRange(0, len(lines)).Draw(r, "at"), "some text")
	}
	end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(r, "line end")
	text = rapid.SampledFrom([]string{"", "Which?" + end}).Draw(r, "head") + strings.Join(lines, end)
	return text + rapid.SampledFrom([]string{"", end, end + "Answer:", end + end + "Answer:" + end}).Draw(r, "tail"), named
}

// Every cell of a row stands in the prompt of the row once, and those of other rows do not, whatever the template and the order.
func TestEveryCellStandsInItsPromptOnce(t *testing.T) {
	testkit.NotUnderRace(t)
	columns := []string{"a", "b", "c", "d"}
	rapid.Check(t, func(r *rapid.T) {
		rows := rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(0, 4), 4, 4), 1, 10).Draw(r, "rows")
		cell := func(row, column int) string {
			v := rows[row][column]
			if v == 0 {
				return ""
			}
			return fmt.Sprintf("<%s\n%d>", columns[column], v)
		}
		var csv strings.Builder
		csv.WriteString("a,b,c,d\n")
		for i := range rows {
			for k := range columns {
				fmt.Fprintf(&csv, "%q,", cell(i, k))
			}
			csv.WriteString("\n")
		}
		text, named := randomTemplate(r, columns)
		order := rapid.SampledFrom([]Order{"", PerRow, Fixed, AsIs}).Draw(r, "order of cells")
		in := strings.ReplaceAll(strings.ReplaceAll(csv.String(), `\n`, "\n"), ",\n", "\n")
		prompts := promptsOf(t, in, Task{Prompt: Prompt{Text: text, Order: order}})
		for i, prompt := range prompts {
			if strings.Contains(prompt, "\r") || strings.Contains(text, "Which?") && !strings.HasPrefix(prompt, "Which?\n") ||
				strings.Contains(text, "Answer:") && !strings.HasSuffix(strings.TrimSuffix(prompt, "\n"), "\nAnswer:") {
				r.Fatalf("row %d of %q: %q", i, text, prompt)
			}
			want := 0
			for k, c := range columns {
				if !slices.Contains(named, c) || cell(i, k) == "" {
					continue
				}
				want++
				if n := strings.Count(prompt, cell(i, k)); n != 1 {
					r.Fatalf("row %d of %q: %q stands there %d times: %q", i, text, cell(i, k), n, prompt)
				}
			}
			if n := strings.Count(prompt, "<"); n != want {
				r.Fatalf("row %d of %q: %d cells, want %d: %q", i, text, n, want, prompt)
			}
		}
	})
}

// With the order of the prompt, a prompt is its text with the cells in their places.
func TestPromptsAsWritten(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		part := rapid.SampledFrom([]string{"{{a}}", "{{b}}", "x", "\n", "{", "}", "é", " "})
		text := strings.Join(rapid.SliceOfN(part, 0, 30).Draw(r, "text"), "")
		if strings.Contains(text, "{{{") || !strings.Contains(text, "{{a}}") && !strings.Contains(text, "{{b}}") {
			r.Skip("another test's")
		}
		l, err := (&Prompt{Text: text, Order: AsIs}).layout([]string{"a", "b"}, false)
		if strings.Contains(strings.NewReplacer("{{a}}", "", "{{b}}", "").Replace(text), "{{") {
			return // "{" beside "{"
		}
		if err != nil {
			r.Fatal(err)
		}
		units, err := l.units([]string{"1\n2", ""}, nil)
		if err != nil {
			r.Fatal(err)
		}
		want := strings.NewReplacer("{{a}}", "1\n2", "{{b}}", "").Replace(text)
		last := text[strings.LastIndexByte(text, '\n')+1:]
		if strings.Contains(last, "{{") {
			want += "\n"
		}
		if got := l.head + strings.Join(units, "") + l.tail; got != want {
			r.Fatalf("%q: got %q, want %q", text, got, want)
		}
	})
}

func TestRowFileRoundTrip(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		unit := rapid.OneOf(rapid.String(), rapid.Map(rapid.IntRange(0, 3<<20), func(n int) string { return strings.Repeat("x", n) }))
		rows := rapid.SliceOfN(rapid.SliceOfN(unit, 0, 4), 0, 12).Draw(r, "rows")
		file, err := newRowFile(dir)
		if err != nil {
			r.Fatal(err)
		}
		defer func() {
			if err := file.Close(); err != nil {
				r.Error(err)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				r.Errorf("%d files are left", len(left))
			}
		}()
		for _, row := range rows {
			if err := file.add(row); err != nil {
				r.Fatal(err)
			}
		}
		for range 2 { // passes do not disturb each other
			i := 0
			for units, err := range file.Rows() {
				if err != nil || !slices.Equal(units, rows[i]) {
					r.Fatalf("row %d: %q, %v", i, units, err)
				}
				at := rapid.IntRange(0, len(rows)-1).Draw(r, "at")
				if units, err := file.row(at); err != nil || !slices.Equal(units, rows[at]) {
					r.Fatalf("row %d: %q, %v", at, units, err)
				}
				i++
			}
			if i != len(rows) || file.Len() != i {
				r.Fatalf("%d rows, Len %d, want %d", i, file.Len(), len(rows))
			}
		}
	})
}

// The cells of a table must not stay on the disk when a process is killed.
func TestRowFileHasNoName(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be removed")
	}
	dir := t.TempDir()
	file, err := newRowFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
}

// A file that is not as it was written is an error, not other prompts.
func TestRowFileNotices(t *testing.T) {
	for name, spoil := range map[string]func(f *os.File) error{
		"cut off":     func(f *os.File) error { return f.Truncate(20) },
		"sizes":       func(f *os.File) error { _, err := f.WriteAt(bytes.Repeat([]byte{0xff}, 12), 0); return err },
		"too few":     func(f *os.File) error { _, err := f.WriteAt([]byte{1}, 0); return err },
		"too long":    func(f *os.File) error { _, err := f.WriteAt([]byte{2, 200}, 0); return err },
		"closed file": func(f *os.File) error { return f.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			file, err := newRowFile(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if err := file.add([]string{"first unit", strings.Repeat("x", 30)}); err != nil {
				t.Fatal(err)
			}
			if _, err := file.row(0); err != nil {
				t.Fatal(err)
			}
			if err := spoil(file.file); err != nil {
				t.Fatal(err)
			}
			if units, err := file.row(0); err == nil || !strings.Contains(err.Error(), file.file.Name()) {
				t.Errorf("row: %q, %v", units, err)
			}
			failed := false
			for units, err := range file.Rows() {
				if failed = err != nil; !failed || !strings.Contains(err.Error(), file.file.Name()) {
					t.Errorf("rows: %q, %v", units, err)
				}
			}
			if !failed {
				t.Error("rows: no error")
			}
			_ = file.Close()
		})
	}
}

// Subtrees are runs of neighbours without gaps, of least to most requests, the last maybe of fewer, and none could begin at a place that
// shares less.
func TestSubtrees(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		least := rapid.IntRange(1, 60).Draw(r, "least")
		most := least + rapid.IntRange(0, 400).Draw(r, "more")
		shared := rapid.SliceOfN(rapid.IntRange(0, 5), 0, 3000).Draw(r, "shared")
		begin := subtrees(shared, least, most)
		if (len(begin) == 0) != (len(shared) == 0) || len(begin) > 0 && begin[0] != 0 {
			r.Fatalf("begins: %v of %d", begin, len(shared))
		}
		for i, from := range begin {
			to := len(shared)
			if i+1 < len(begin) {
				to = begin[i+1]
			}
			if n := to - from; n > most || n < least && i+1 < len(begin) || n <= 0 {
				r.Fatalf("subtree %d has %d requests, want %d to %d", i, n, least, most)
			}
			for at := from + least; i+1 < len(begin) && at <= min(from+most, len(shared)-1); at++ {
				if shared[at] < shared[to] || shared[at] == shared[to] && at > to {
					r.Fatalf("subtree %d ends at %d, which shares %d; %d shares %d", i, to, shared[to], at, shared[at])
				}
			}
		}
	})
}

func TestSubtreesAtTheBounds(t *testing.T) {
	for n, want := range map[int][]int{0: nil, 1: {0}, 49: {0}, 500: {0}, 501: {0, 500}, 1000: {0, 500}, 1001: {0, 500, 1000}} {
		if got := subtrees(make([]int, n), leastSubtree, mostSubtree); !slices.Equal(got, want) {
			t.Errorf("%d requests that share the same: %v, want %v", n, got, want)
		}
	}
}

// The subtrees of a job are numbered in the order of its requests, and have the sizes that are promised.
func TestSubtreesOfAJob(t *testing.T) {
	var csv strings.Builder
	csv.WriteString("a,b\n")
	for i := range 1700 {
		fmt.Fprintf(&csv, "%d,%d\n", i, i/300)
	}
	p, err := arranged(t, csv.String(), Task{}) // a search for orders takes long
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[int]int{}
	for i, r := range requestsOf(t, p) {
		if r.Seq != i || r.Subtree != len(sizes) && r.Subtree != len(sizes)-1 {
			t.Fatalf("request %d: %d in subtree %d", i, r.Seq, r.Subtree)
		}
		sizes[r.Subtree]++
	}
	for i := range sizes {
		if n := sizes[i]; n > mostSubtree || n < leastSubtree && i != len(sizes)-1 {
			t.Errorf("subtree %d has %d requests", i, n)
		}
	}
	if len(sizes) != len(p.begin) || len(sizes) < 4 {
		t.Errorf("subtrees: %v, begins: %v", sizes, p.begin)
	}
}

// known counts the tokens that a prompt has in common with the beginning of any earlier prompt, in whole blocks.
func TestKnownTokens(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		prompts := rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom([]int32{0, 1, 256, 1 << 16, 1 << 24, -1}), 1, 12), 1, 30).Draw(r, "prompts")
		block := rapid.IntRange(1, 4).Draw(r, "block")
		seen := map[xxh3.Uint128]struct{}{}
		for i, prompt := range prompts {
			want := 0
			for _, earlier := range prompts[:i] {
				n := 0
				for n < min(len(earlier), len(prompt)) && earlier[n] == prompt[n] {
					n++
				}
				want = max(want, n)
			}
			want = min(want, len(prompt)-1) / block * block
			if got := known(seen, prompt, block); got != want {
				r.Fatalf("prompt %d: %d tokens are known, want %d: %v", i, got, want, prompts[:i+1])
			}
		}
	})
}

// Equal rows share a request, and a NULL is an empty cell.
func TestEqualRowsShareARequest(t *testing.T) {
	in := tableOf(t, table.JSONL, `{"a":"x","b":null}
{"a":"x","b":""}
{"a":"y","b":"z"}
{"a":"x"}
`)
	p, err := arrange(t, in, Task{})
	if err != nil {
		t.Fatal(err)
	}
	prompts := byRow(t, p)
	if all := requestsOf(t, p); len(all) != 2 || prompts[0] != "a: x\nb: \n" || prompts[2] != "a: y\nb: z\n" {
		t.Errorf("%d requests: %q", len(all), prompts)
	}
}

// Rows without any text of their own are asked, too.
func TestRowsWithoutUnits(t *testing.T) {
	for _, order := range []Order{PerRow, AsIs} {
		task := Task{Prompt: Prompt{Text: "Sum up.\n{{blocks}}\nNow:", Blocks: "found", Order: order}}
		prompts := promptsOf(t, "id,found\n1,\n2,[]\n3,text\n", task)
		if prompts[0] != "Sum up.\nNow:" || prompts[1] != prompts[0] || !strings.Contains(prompts[2], "\ntext\n") {
			t.Errorf("%s: %q", order, prompts)
		}
	}
}
