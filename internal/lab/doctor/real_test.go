package doctor_test

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/lab/doctor"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// TestRealLlamaCPP examines a llama-server. It needs the program and a model.
func TestRealLlamaCPP(t *testing.T) {
	program, file := testkit.Llama(t)
	for _, tt := range []struct {
		name string
		args []string
		want []string
		host string
	}{
		{"well", []string{"--parallel", "2", "--metrics"}, nil, "on: "},
		{"no host cache", []string{"--parallel", "2", "--metrics", "--cache-ram", "0"}, nil, "off: "},
		{"one slot and no metrics", []string{"--parallel", "1"}, []string{"warning: metrics", "warning: slots"}, "on: "},
		{"cache reuse", []string{"--parallel", "2", "--metrics", "--cache-reuse", "32"}, []string{"warning: cache reuse"}, "on: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			r := examine(t, doctor.Config{Engine: llama(t, program, file, append(tt.args, "--slot-save-path", dir)...), SlotDir: dir})
			t.Log(printed(r))
			if got := wrong(r); !slices.Equal(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
			if c := find(t, r, "host cache"); !strings.HasPrefix(c.Saw, tt.host) {
				t.Errorf("host cache: %s", c.Saw)
			}
		})
	}
}

// llama starts a llama-server, which ends with the test.
func llama(t *testing.T, program, file string, args ...string) string {
	t.Helper()
	address := strings.TrimPrefix(freeTCP(t), "tcp://")
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program,
		append([]string{"-m", file, "--host", host, "--port", port, "-t", "1", "-c", "8192", "--jinja"}, args...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	url := "http://" + address
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for limit := time.Now().Add(time.Minute); time.Now().Before(limit); time.Sleep(50 * time.Millisecond) {
		request := testkit.Request(t, http.MethodGet, url+"/health", http.NoBody)
		response, err := client.Do(request)
		if err != nil {
			continue
		}
		_ = response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return url
		}
	}
	t.Fatal("llama-server is not ready after a minute")
	return ""
}

// TestRealVLLM examines the server that RAGPILOT_VLLM_URL names, which is taken to be set up well.
func TestRealVLLM(t *testing.T) {
	url := os.Getenv("RAGPILOT_VLLM_URL")
	if url == "" {
		t.Skip("RAGPILOT_VLLM_URL names no vLLM server")
	}
	r := examine(t, doctor.Config{Engine: url})
	t.Log(printed(r))
	if r.Kind != doctor.VLLM || r.Count(doctor.Problem) > 0 {
		t.Errorf("%s with %d problems", r.Kind, r.Count(doctor.Problem))
	}
}
