// Command vulnreport reads the output of "govulncheck -format json" and prints a line for each known vulnerability of a module that our code
// calls. Those that the file given by -accepted lists are said to be accepted. It exits 3 if one is called that is not accepted, and 1 if one
// that is accepted is not called any more.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// message is the part that is used here of one of govulncheck's messages.
type message struct {
	Config *struct {
		GoVersion string `json:"go_version"`
	}
	OSV     *struct{ ID, Summary string }
	Finding *struct {
		OSV          string
		FixedVersion string `json:"fixed_version"`
		Trace        []frame
	}
}

// frame is one call on the way to what is vulnerable, which is the first.
type frame struct {
	Module, Version, Package, Function, Receiver string
	Position                                     struct {
		Filename string
		Line     int
	}
}

// finding is a vulnerability in a version of a module: "GO-2026-6599 stdlib@v1.26.8".
type finding struct{ fixed, example string }

func main() {
	path := flag.String("accepted", "", "file of accepted vulnerabilities")
	flag.Parse()
	file, err := os.Open(*path)
	if err == nil {
		defer file.Close()
		var status int
		if status, err = report(os.Stdin, file, os.Stdout); err == nil {
			os.Exit(status)
		}
	}
	fmt.Fprintln(os.Stderr, "vulnreport:", err)
	os.Exit(2)
}

// report returns the exit status.
func report(in, list io.Reader, out io.Writer) (int, error) {
	accepted, err := read(list)
	if err != nil {
		return 0, err
	}
	goVersion, summaries, called, err := scan(in)
	if err != nil {
		return 0, err
	}
	status, counts := 0, [2]int{}
	for _, key := range slices.Sorted(maps.Keys(called)) {
		f, word := called[key], "FOUND   "
		reason, ok := accepted[key]
		if ok {
			word = "accepted"
			counts[1]++
		} else {
			status = 3
			counts[0]++
		}
		id, _, _ := strings.Cut(key, " ")
		fmt.Fprintf(out, "%s %s (fixed: %s): %s\n", word, key, f.fixed, summaries[id])
		if ok {
			fmt.Fprintf(out, "         accepted %s\n", reason)
		} else {
			fmt.Fprintf(out, "         %s\n", f.example)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(accepted)) {
		// What is accepted of another Go is for those who have that one.
		other := strings.Contains(key, " stdlib@") && !strings.HasSuffix(key, " stdlib@v"+strings.TrimPrefix(goVersion, "go"))
		if _, ok := called[key]; !ok && !other {
			fmt.Fprintf(out, "FAILED   %s is accepted, and not found any more: take it off the list\n", key)
			if status == 0 {
				status = 1
			}
		}
	}
	fmt.Fprintf(out, "%d vulnerabilities found, %d more are accepted; %s\n", counts[0], counts[1], goVersion)
	return status, nil
}

// read returns, by vulnerability and module, since when and why each is accepted.
func read(list io.Reader) (map[string]string, error) {
	accepted := map[string]string{}
	for lines := bufio.NewScanner(list); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) < 4 {
			return nil, fmt.Errorf("%q: want ID, module@version, date and reason", lines.Text())
		}
		if _, err := time.Parse(time.DateOnly, words[2]); err != nil {
			return nil, fmt.Errorf("%q: %w", lines.Text(), err)
		}
		accepted[words[0]+" "+words[1]] = words[2] + ": " + strings.Join(words[3:], " ")
	}
	return accepted, nil
}

// scan returns the version of Go, what the vulnerabilities are, and which are called.
func scan(in io.Reader) (goVersion string, summaries map[string]string, called map[string]finding, err error) {
	summaries, called = map[string]string{}, map[string]finding{}
	for decoder := json.NewDecoder(in); ; {
		var m message
		if err := decoder.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return "", nil, nil, err
		}
		switch {
		case m.Config != nil:
			goVersion = m.Config.GoVersion
		case m.OSV != nil:
			summaries[m.OSV.ID] = m.OSV.Summary
		case m.Finding != nil && len(m.Finding.Trace) > 0 && m.Finding.Trace[0].Function != "":
			trace := m.Finding.Trace
			at, ours := trace[0], trace[len(trace)-1]
			key := m.Finding.OSV + " " + at.Module + "@" + at.Version
			if _, ok := called[key]; ok {
				continue // one example is enough
			}
			fixed := m.Finding.FixedVersion
			if fixed == "" {
				fixed = "nowhere"
			}
			called[key] = finding{fixed, fmt.Sprintf("%s:%d calls, in the end, %s", ours.Position.Filename, ours.Position.Line, at.name())}
		}
	}
	if goVersion == "" {
		return "", nil, nil, errors.New("no output of govulncheck -format json")
	}
	return goVersion, summaries, called, nil
}

func (f frame) name() string {
	if f.Receiver != "" {
		return f.Package + "." + f.Receiver + "." + f.Function
	}
	return f.Package + "." + f.Function
}
