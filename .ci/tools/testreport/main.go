// Command testreport reads the output of "go test -json" and prints what a reader needs: one line per package, the
// output of what failed, and every skipped test with its reason. It exits 1 if anything failed, if there was no
// test at all, or if the reason of a skip contains the text given by -forbid-skip. A reason that begins with "not run: " is also printed as a
// line of its own, by which .ci/run knows that the step passed in part. The tests that took longest are named, too.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// event is one line of test2json's output; see "go doc test2json".
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

func main() {
	forbid := flag.String("forbid-skip", "", "fail if the reason of a skipped test contains this text")
	flag.Parse()
	if !report(os.Stdin, os.Stdout, *forbid) {
		os.Exit(1)
	}
}

// report returns whether everything is in order.
func report(in io.Reader, out io.Writer, forbid string) bool {
	output := map[string]*strings.Builder{} // by package and test, until that is over
	var longest []event                     // tests, the longest first
	ok, passed, failed, skipped := true, 0, 0, 0
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			fmt.Fprintf(out, "%s\n", lines.Bytes())
			ok = false
			continue
		}
		key := e.Package + e.ImportPath + " " + e.Test
		if output[key] == nil {
			output[key] = &strings.Builder{}
		}
		switch e.Action {
		case "output", "build-output":
			output[key].WriteString(e.Output)
			continue
		case "fail", "build-fail":
			ok = false
			fmt.Fprintf(out, "FAIL %s\n%s", key, output[key])
			if e.Test != "" {
				failed++
			}
		case "skip":
			if e.Test == "" {
				break // a package without tests
			}
			skipped++
			why := reason(output[key].String())
			fmt.Fprintf(out, "skip %s: %s\n", key, why)
			if _, part, found := strings.Cut(why, ": not run: "); found { // behind file and line
				fmt.Fprintf(out, "not run: %s (%s)\n", key, part)
			}
			if forbid != "" && strings.Contains(output[key].String(), forbid) {
				fmt.Fprintf(out, "FAIL %s: it must not be skipped, as %s is there\n", key, forbid)
				ok = false
			}
		case "pass":
			if e.Test == "" {
				fmt.Fprintf(out, "ok   %6.1f s  %s\n", e.Elapsed, e.Package)
			} else {
				passed++
				if !strings.Contains(e.Test, "/") && e.Elapsed >= 3 {
					longest = append(longest, e)
					slices.SortStableFunc(longest, func(a, b event) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
					longest = longest[:min(len(longest), 12)]
				}
			}
		default:
			continue
		}
		delete(output, key)
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(out, "reading the test output:", err)
		ok = false
	}
	for _, e := range longest {
		fmt.Fprintf(out, "long %6.1f s  %s %s\n", e.Elapsed, e.Package, e.Test)
	}
	fmt.Fprintf(out, "tests: %d passed, %d failed, %d skipped\n", passed, failed, skipped)
	return ok && passed > 0
}

// reason returns a skipped test's own words.
func reason(output string) string {
	var words []string
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") {
			words = append(words, line)
		}
	}
	return strings.Join(words, " ")
}
