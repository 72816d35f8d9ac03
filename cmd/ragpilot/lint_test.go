package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// lintBody is a request with a time in its system text.
func lintBody(time, more string) string {
	return `{"model":"m","messages":[{"role":"system","content":"It is 2026-11-27T` + time +
		`Z. Answer every question about the garden in one short sentence."},{"role":"user","content":"Hello SECRETWORD"}` + more + "]}\n"
}

var lintBodies = lintBody("04:14:05", "") + "\n" +
	lintBody("04:15:11", `,{"role":"assistant","content":"Good morning"},{"role":"user","content":"When do plums ripen?"}`)

func lintTool(schema string) string {
	return `{"model":"m","messages":[{"role":"user","content":"Where is it?"}],` +
		`"tools":[{"type":"function","function":{"name":"f","parameters":` + schema + "}}]}\n"
}

var lintTools = lintTool(`{"type":"object","properties":{"b":{"type":"number","maximum":1.50},"a":{"type":"string"}}}`) +
	lintTool(`{"properties":{"a":{"type":"string"},"b":{"maximum":1.50,"type":"number"}},"type":"object"}`)

func lintFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLint(t *testing.T) {
	path := lintFile(t, "requests.jsonl", lintBodies)
	for _, c := range []struct {
		name   string
		args   []string
		want   string
		status int
	}{
		{"json", []string{"--json", path}, `{"line":3,"against":1,"cause":"clock","path":"messages[0].content","token":8,"lost_tokens":18}` + "\n", 1},
		{
			"prices",
			[]string{"--json", "--input-price", "3", "--cached-price", "1", "--prefill-speed", "100", path},
			`{"line":3,"against":1,"cause":"clock","path":"messages[0].content","token":8,"lost_tokens":18,"cost":0.000036,"seconds":0.18}` + "\n", 1,
		},
		{"least", []string{"--min-lost", "19", path}, "2 requests, 0 findings, 0 tokens lost\n", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := run(t, append([]string{"lint"}, c.args...)...)
			status := 0
			if err != nil {
				status = exitStatus(err)
			}
			if out != c.want || status != c.status {
				t.Errorf("%d\n%s\nwant %d\n%s", status, out, c.status, c.want)
			}
		})
	}
}

// TestLintKeepsTexts: without the flag nothing of a request is printed.
func TestLintKeepsTexts(t *testing.T) {
	path := lintFile(t, "requests.jsonl", lintBodies)
	for _, form := range [][]string{{"lint", path}, {"lint", "--json", path}} {
		if out, err := run(t, form...); err == nil || strings.Contains(out, "04:1") || strings.Contains(out, "garden") {
			t.Errorf("%s", out)
		}
	}
	if out, _ := run(t, "lint", "--keep-texts", path); !strings.Contains(out, `was "It is 2026-11-27T04:14:05Z.`) {
		t.Errorf("%s", out)
	}
}

func TestLintFix(t *testing.T) {
	path := lintFile(t, "tools.jsonl", lintTools)
	if out, err := run(t, "lint", path); err == nil || !strings.Contains(out, "map-order at tools[0].function.parameters") {
		t.Errorf("%v %s", err, out)
	}
	if out, err := run(t, "lint", "--fix", path); err != nil {
		t.Errorf("%v %s", err, out)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	if len(text) != len(lintTools) || lines[0] != lines[1] || !strings.Contains(lines[0], `"maximum":1.50,"type":"number"`) {
		t.Errorf("%s", text)
	}
	link, behind := filepath.Join(t.TempDir(), "link.jsonl"), lintFile(t, "tools.jsonl", lintTools)
	if err := os.Symlink(behind, link); err != nil {
		t.Fatal(err)
	}
	_, _ = run(t, "lint", "--fix", link)
	if fixed, err := os.ReadFile(behind); err != nil || string(fixed) != string(text) {
		t.Errorf("%v: behind a link: %s", err, fixed)
	}
	bodies := lintFile(t, "requests.jsonl", lintBodies)
	_, _ = run(t, "lint", "--fix", bodies)
	if text, err := os.ReadFile(bodies); err != nil || string(text) != lintBodies {
		t.Errorf("%v: a file without tools was changed: %s", err, text)
	}
}

func TestLintBadInput(t *testing.T) {
	bad := lintFile(t, "bad.jsonl", "{\n{\"model\":\"m\"}\n"+strings.SplitN(lintBodies, "\n", 2)[0]+"\n")
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "no file"},
		{[]string{filepath.Join(t.TempDir(), "none.jsonl")}, "none.jsonl"},
		{[]string{bad}, "bad.jsonl:1: prefixdiff: invalid JSON"},
		{[]string{bad}, "bad.jsonl:2: prefixdiff: no messages, input, contents, prompt or text"},
		{[]string{lintFile(t, "empty.jsonl", "")}, "no requests"},
		{[]string{"--min-lost", "-1", bad}, "--min-lost -1: want at least 0"},
		{[]string{"--input-price", "-1", bad}, "--input-price -1: want at least 0"},
		{[]string{"--fix", t.TempDir()}, "want a file of requests"},
	} {
		_, err := run(t, append([]string{"lint"}, c.args...)...)
		if err == nil || !strings.Contains(err.Error(), c.want) || exitStatus(err) != 2 {
			t.Errorf("%v: %v, want %q", c.args, err, c.want)
		}
	}
}

// A .json file may have one request on many lines. Files that cannot be read have no number.
func TestLintIndentedJSON(t *testing.T) {
	dir := t.TempDir()
	indented := func(body string) string {
		var b bytes.Buffer
		if err := json.Indent(&b, []byte(body), "", "  "); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for name, text := range map[string]string{
		"a.json": indented(`{"other":"thing"}`), "b.json": indented(lintBody("04:14:05", "")), "c.json": indented(lintBody("04:15:11", "")),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := run(t, "lint", dir)
	want := "c.json:1: clock at messages[0].content, token 8: 18 tokens lost against " + filepath.Join(dir, "b.json") + "\n"
	if !strings.Contains(out, want) || !strings.Contains(out, "2 requests, 1 finding, 18 tokens lost") {
		t.Errorf("%s\nwant %s", out, want)
	}
	if err == nil || exitStatus(err) != 1 {
		t.Errorf("%v: JSON of another kind is no error in a folder", err)
	}
	if _, err := run(t, "lint", filepath.Join(dir, "a.json")); err == nil || strings.Count(err.Error(), "\n") > 0 ||
		!strings.Contains(err.Error(), "a.json: prefixdiff: no messages") {
		t.Errorf("%v, want one error about a.json", err)
	}
	tools := strings.SplitAfter(lintTools, "\n")
	path := lintFile(t, "tools.json", indented(tools[0]))
	if _, err := run(t, "lint", "--fix", path); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Index(string(text), `"type": "object"`) < strings.Index(string(text), `"maximum"`) {
		t.Errorf("%v: not fixed: %s", err, text)
	}
}

// An action of a template has no token: what the template puts in front of it is not known.
func TestLintTemplate(t *testing.T) {
	path := lintFile(t, "p.tmpl", "Be brief.\nIt is {{.Now}}.\n"+strings.Repeat("Answer every question about the garden. ", 5))
	out, err := run(t, "lint", path)
	if err == nil || !strings.HasPrefix(out, path+":2: clock at {{.Now}}: 4") {
		t.Errorf("%v %s", err, out)
	}
}

// TestLintLongLine: the error names the line.
func TestLintLongLine(t *testing.T) {
	if testing.Short() {
		t.Skip("writes a line of 64 MiB")
	}
	path := lintFile(t, "long.jsonl", lintBody("04:14:05", "")+strings.Repeat("a", 64<<20+1))
	if _, err := run(t, "lint", path); err == nil || !strings.Contains(err.Error(), "long.jsonl: line 2: longer than 67108864 bytes") {
		t.Errorf("%v", err)
	}
}

// TestLintFolder: prompts of a folder are compared with each other.
func TestLintFolder(t *testing.T) {
	dir := t.TempDir()
	rules := strings.Repeat("Answer every question about the garden in one short sentence.\n", 9)
	for name, text := range map[string]string{
		"a.golden": "Be brief.\nIt is 04:14:05.\n" + rules, "b.golden": "Be brief.\nIt is 04:15:11.\n" + rules, "c.png": "no",
		"package.json": `{"name":"garden"}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := run(t, "lint", dir)
	want := filepath.Join(dir, "b.golden") + ":2: clock at prompt"
	if err == nil || !strings.HasPrefix(out, want) || !strings.Contains(out, "against "+filepath.Join(dir, "a.golden")) {
		t.Errorf("%v\n%s\nwant %s", err, out, want)
	}
}
