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
