package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/engines/local/localtest"
)

// A folder is compressed, a chat answers from the file, and an engine serves it by name.
func TestCompress(t *testing.T) {
	dir, model := t.TempDir(), filepath.Join(t.TempDir(), "tiny.gguf")
	if err := localtest.WriteModel(model, 1); err != nil {
		t.Fatal(err)
	}
	docs := filepath.Join(dir, "docs")
	if err := os.Mkdir(docs, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		text := fmt.Sprintf("Lamp %d. %s", i, strings.Repeat("The lamp is lit. ", 15))
		if err := os.WriteFile(filepath.Join(docs, fmt.Sprintf("%d.md", i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	notes, out, written := filepath.Join(dir, "notes"), filepath.Join(dir, "lamps.context"), filepath.Join(dir, "written")
	if err := os.WriteFile(notes, []byte("The lamp is lit.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"compress", "--docs", docs, "--task", "Answer questions about lamps.", "--out", out, "--model", model}
	text, err := run(t, append(args, "--max-notes", "20", "--notes-out", written)...)
	if err != nil || !strings.Contains(text, "3 documents, joint, scorer reference, notes: model") || !strings.Contains(text, "it pays from") {
		t.Fatal(text, err)
	}
	if info, err := os.Stat(written); err != nil || info.Size() < 2 {
		t.Error("no notes", err)
	}
	if text, err = run(t, append(args, "--notes", notes, "--by-document")...); err != nil || !strings.Contains(text, "by document") {
		t.Fatal(text, err)
	}
	if text, err = run(t, append(args, "--notes", notes, "--by-document")...); err != nil ||
		!strings.Contains(text, "3 of 4 parts are as before") {
		t.Fatal(text, err)
	}
	slot := filepath.Join(dir, "lamps.slot")
	text, err = run(t, "compress", "--docs", docs, "--task", "Answer questions about lamps.", "--out", slot, "--model", model, "--notes",
		notes, "--format", "llama-slot", "--parallel", "2")
	if err != nil || !strings.Contains(text, "llama-slot, f16, for --parallel 2") {
		t.Fatal(text, err)
	}
	for _, name := range []string{slot, slot + ".json"} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, error %v", name, info, err)
		}
	}
	chat := []string{"--context", out, "--model", model, "--max-tokens", "4"}
	text, err = chatWith(t, "Is it lit?\nAnd now?\n", chat...)
	if err != nil || strings.Count(text, "[context; ") != 2 {
		t.Errorf("%s\nerror %v", text, err)
	}
	text, err = chatWith(t, "Is the lamp lit?\n", append(chat, "--docs", docs, "--k", "1")...)
	if err != nil || !strings.Contains(text, "[context 0.md#0; ") && !strings.Contains(text, "[context 1.md#0; ") &&
		!strings.Contains(text, "[context 2.md#0; ") {
		t.Errorf("%s\nerror %v", text, err)
	}
	for want, args := range map[string][]string{
		"--docs":                 {"--task", "a", "--out", out},
		"--task":                 {"--docs", docs, "--out", out},
		"--out":                  {"--docs", docs, "--task", "a"},
		`--budget "0"`:           {"--docs", docs, "--task", "a", "--out", out, "--budget", "0", "--model", model},
		`--scorer "best"`:        {"--docs", docs, "--task", "a", "--out", out, "--scorer", "best", "--model", model},
		`--format "int4"`:        {"--docs", docs, "--task", "a", "--out", out, "--format", "int4", "--model", model},
		`--notes-kind "poem"`:    {"--docs", docs, "--task", "a", "--out", out, "--notes-kind", "poem", "--model", model},
		"--notes " + docs + "/0": {"--docs", docs, "--task", "a", "--out", out, "--notes", docs + "/0"},
		"--out: ":                {"--docs", docs, "--task", "a", "--out", notes, "--notes", notes, "--model", model},
		"--docs: ":               {"--docs", dir + "/none", "--task", "a", "--out", out},
		"--model ":               {"--docs", docs, "--task", "a", "--out", out, "--model", dir + "/none.gguf"},
	} {
		if _, err := run(t, append([]string{"compress"}, args...)...); err == nil ||
			!strings.HasPrefix(err.Error(), strings.Split(want, "/0")[0]) && !strings.HasPrefix(err.Error(), "--notes: ") {
			t.Errorf("error %v, want one that begins with %q", err, want)
		}
	}
	if _, err := chatWith(t, "", "--context", out, "--engine", "http://127.0.0.1:1", "--model", "m"); err == nil ||
		!strings.Contains(err.Error(), "--context") {
		t.Errorf("error %v of a context for another engine", err)
	}
	for _, value := range [][]string{{"a"}, {"=b"}, {"a=b", "a=c"}} {
		if _, err := contexts(value); err == nil || !strings.HasPrefix(err.Error(), "--context ") {
			t.Errorf("%v: error %v", value, err)
		}
	}
}

// The time that is left is shown now and then.
func TestLeft(t *testing.T) {
	var b strings.Builder
	now := time.Unix(0, 0)
	show := left(&b, func() time.Time { return now })
	for i := range 100 {
		now = now.Add(time.Second)
		show(float64(i+1) / 100)
	}
	if want := " 30 % done, about 1m10s left\n 60 % done, about 40s left\n 90 % done, about 10s left\n"; b.String() != want {
		t.Errorf("%q, want %q", &b, want)
	}
}
