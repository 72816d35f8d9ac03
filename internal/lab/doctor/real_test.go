package doctor_test

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/lab/doctor"
	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/internal/testkit/gatewaytest"
)

// clockTemplate is a chat template that puts the time in front.
const clockTemplate = `It is {{ strftime_now("%H:%M:%S") }}. {% for m in messages %}{{ m.role }}: {{ m.content }}
{% endfor %}assistant: `

// TestRealLlamaCPP examines a llama-server, as it should be started and with one thing wrong at a time. It needs the program and a model.
func TestRealLlamaCPP(t *testing.T) {
	program, file := testkit.Llama(t)
	well := []string{"--parallel", "2", "--metrics"}
	dir := t.TempDir()
	for _, tt := range []misconfigured{
		{name: "well", args: append([]string{"--slot-save-path", dir}, well...), config: doctor.Config{SlotDir: dir}, says: []string{"on: "}},
		{name: "a prefix of any length", args: well, config: doctor.Config{Prefix: "Hi."}, says: []string{"reuse is counted in single tokens"}},
		{name: "no host cache", args: append([]string{"--cache-ram", "0"}, well...), says: []string{"off: "}},
		{
			name: "one slot and no metrics", args: []string{"--parallel", "1"},
			want: []string{"warning: metrics", "warning: slots"}, says: []string{"on: ", "start the server with --metrics", "--parallel N"},
		},
		{name: "slots hidden", args: append([]string{"--no-slots"}, well...), want: []string{"warning: slots"}, says: []string{"with --slots"}},
		{name: "cache reuse", args: append([]string{"--cache-reuse", "32"}, well...), want: []string{"warning: cache reuse"}, says: []string{"on: "}},
		{
			name: "no prompt cache", args: append([]string{"--no-cache-prompt"}, well...),
			want: []string{"problem: prefix caching"}, says: []string{"without --no-cache-prompt"},
		},
		{
			name: "a clock in the template", args: append([]string{"--chat-template", clockTemplate}, well...),
			config: doctor.Config{Wait: 5 * time.Second}, // so that a second passes between two questions
			want:   []string{"problem: chat template"}, says: []string{"take the time out of the model's chat template"},
		},
		{
			name: "a window below the budget", args: well, config: doctor.Config{Budget: 6000},
			want: []string{"problem: window"}, says: []string{"4096 tokens of prompt and answer, below the budget of 6000"},
		},
		{
			name: "no folder for slot files", args: well, config: doctor.Config{SlotDir: dir},
			want: []string{"problem: slot files"}, says: []string{"--slot-save-path"},
		},
		{
			name: "another key", args: append([]string{"--api-key", "secret"}, well...), config: doctor.Config{APIKey: "other"},
			want: []string{"problem: health"}, says: []string{"give --api-key"},
		},
		{
			name: "events that there are not", args: well, config: doctor.Config{Events: "tcp://127.0.0.1:1"},
			want: []string{"problem: event connection", "warning: event replay"}, says: []string{"no listener at tcp://127.0.0.1:1"},
		},
		{
			name: "two servers in turn", args: well, engines: 2,
			want: []string{"problem: prefix caching"}, says: []string{"several engines seem to share this address"},
		},
		{
			name: "stream options are dropped, without which it reports usage, too", args: well,
			faults: []gatewaytest.Fault{gatewaytest.Drops("stream_options")},
		},
		{
			name: "details are hidden", args: well, faults: []gatewaytest.Fault{gatewaytest.HidesDetails()},
			want: []string{"problem: token details"}, says: []string{"the metrics count"},
		},
		{
			name: "the time in front", args: well, faults: []gatewaytest.Fault{gatewaytest.Dates()},
			want: []string{"problem: chat template", "problem: prefix caching"},
		},
	} {
		tt.run(t, func(t *testing.T) string { return llama(t, program, file, tt.args...) })
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
