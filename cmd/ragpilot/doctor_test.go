package main

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/lab/doctor"
	"github.com/ragpilot/ragpilot/internal/lab/upstream"
)

func TestDoctor(t *testing.T) {
	server := httptest.NewServer(upstream.New(upstream.Options{}))
	defer server.Close()
	out, err := run(t, "doctor", "--engine", server.URL)
	if err != nil || !strings.Contains(out, "prefix caching") || !strings.Contains(out, " 0 problems") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = run(t, "doctor", "--engine", server.URL, "--model", "huge", "--no-probe", "--json")
	var report doctor.Report
	if jsonErr := json.Unmarshal([]byte(out), &report); jsonErr != nil || report.Count(doctor.Problem) != 1 || report.Sent.Prompts != 0 {
		t.Errorf("%v: %s", jsonErr, out)
	}
	if err == nil || exitStatus(err) != 1 {
		t.Errorf("error %v", err)
	}
}

// TestDoctorPrefix: what requests share is read from a file, and compared with a block.
func TestDoctorPrefix(t *testing.T) {
	server := httptest.NewServer(upstream.New(upstream.Options{BlockTokens: 32}))
	defer server.Close()
	for name, tt := range map[string]struct {
		data, says string
		status     int
	}{
		"short.txt": {"Answer briefly.", "your shared prefix is shorter than one cache block", 1},
		"long.txt":  {strings.Repeat("Answer briefly. ", 60), " in whole blocks of 32", 0},
		"body.json": {`{"messages":[{"role":"system","content":"Answer."},{"role":"user","content":"q"}]}`, "shorter than one cache block", 1},
		"only.json": {`{"messages":[{"role":"user","content":"q"}]}`, "only message is the user's", 2},
		"empty.txt": {"", "empty.txt: it is empty", 2},
	} {
		out, err := run(t, "doctor", "--engine", server.URL, "--prefix", write(t, name, tt.data))
		status := 0
		if err != nil {
			status = exitStatus(err)
			out += err.Error()
		}
		if status != tt.status || !strings.Contains(out, tt.says) {
			t.Errorf("%s: status %d, want %d and %q\n%s", name, status, tt.status, tt.says, out)
		}
	}
	for _, args := range [][]string{
		{"--engine", server.URL, "--prefix", t.TempDir() + "/none"},
		{"--engine", server.URL, "--prefix", t.TempDir()},
		{"--engine", "local", "--prefix", write(t, "a.txt", "text")},
	} {
		_, err := run(t, append([]string{"doctor"}, args...)...)
		if err == nil || exitStatus(err) != 2 || !strings.Contains(err.Error(), "prefix") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestDoctorStatus(t *testing.T) {
	server := httptest.NewServer(upstream.New(upstream.Options{}))
	defer server.Close()
	for _, tt := range []struct {
		args []string
		want int
	}{
		{[]string{"--engine", server.URL}, 0},
		{[]string{"--engine", refusedURL(t)}, 1},
		{[]string{"--engine", "localhost:9"}, 2},
		{[]string{"--budget", "many"}, 2},
		{[]string{"--wait", "-1s"}, 2},
		{[]string{"--engin", "x"}, 2},
		{[]string{"surplus"}, 2},
	} {
		err := command(t.Context(), append([]string{"doctor"}, tt.args...)...).Run()
		got := 0
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			got = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		if got != tt.want {
			t.Errorf("%v: status %d, want %d", tt.args, got, tt.want)
		}
	}
}
