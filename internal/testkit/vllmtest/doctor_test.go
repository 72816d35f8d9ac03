//go:build unix

package vllmtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/lab/doctor"
	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/internal/testkit/gatewaytest"
)

// examination is what the doctor is asked about a server, and what it must find.
type examination struct {
	name   string
	config doctor.Config
	faults []gatewaytest.Fault // of a gateway in front of the server
	other  *server             // that takes turns with it
	want   []string            // the checks that are wrong
	says   []string            // in what was seen, or in what to do
}

func (e *examination) run(t *testing.T, s *server) {
	t.Helper()
	t.Run(e.name, func(t *testing.T) {
		e.config.Engine = s.url()
		if e.faults != nil || e.other != nil {
			engines := []string{s.url()}
			if e.other != nil {
				engines = append(engines, e.other.url())
			}
			e.config.Engine = gatewaytest.Start(t, engines, e.faults...)
		}
		report, err := doctor.Run(t.Context(), e.config)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		_ = report.Print(&text)
		t.Log(text.String())
		var wrong []string
		for _, c := range report.Checks {
			if c.Result == doctor.Problem || c.Result == doctor.Warning {
				wrong = append(wrong, string(c.Result)+": "+c.Name)
			}
		}
		if !slices.Equal(wrong, e.want) {
			t.Errorf("%q, want %q", wrong, e.want)
		}
		for _, says := range e.says {
			if !strings.Contains(text.String(), says) {
				t.Errorf("it does not say %q", says)
			}
		}
	})
}

// clockTemplate is a chat template that puts the time in front.
const clockTemplate = `It is {{ strftime_now("%H:%M:%S") }}. {% for m in messages %}{{ m.role }}: {{ m.content }}
{% endfor %}assistant: `

// TestRealDoctor examines servers, as they should be started and with one thing wrong at a time.
func TestRealDoctor(t *testing.T) {
	python, model := needs(t, envTiny)
	start := func(t *testing.T, block int, more ...string) *server {
		return serve(t, options{
			python: python, model: model, block: block, blocks: 8192 / block, window: 1900, dtype: "float32", replay: true, more: more,
		})
	}
	t.Run("started well", func(t *testing.T) {
		s := start(t, 128)
		for _, e := range startedWell(start(t, 32)) {
			e.run(t, s)
		}
	})
	template := filepath.Join(t.TempDir(), "clock.jinja")
	if err := os.WriteFile(template, []byte(clockTemplate), 0o600); err != nil {
		t.Fatal(err)
	}
	at := "tcp://" + testkit.FreeAddress(t)
	connects := fmt.Sprintf(`{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":%q,"replay_endpoint":"tcp://*:%s","topic":"kv@test"}`, at,
		port("tcp://"+testkit.FreeAddress(t)))
	for _, tt := range []struct {
		examination
		block int
		flags []string
	}{
		{examination{
			name: "no cache", want: []string{"problem: prefix caching"}, says: []string{"vLLM without --no-enable-prefix-caching"},
		}, 32, []string{"--no-enable-prefix-caching"}},
		{examination{
			name: "no details", want: []string{"problem: token details"}, says: []string{"--enable-prompt-tokens-details", "the metrics count"},
		}, 32, []string{"--no-enable-prompt-tokens-details"}},
		{examination{
			name: "no statistics", want: []string{"warning: metrics"}, says: []string{"64 tokens, measured with", "without --disable-log-stats"},
		}, 64, []string{"--disable-log-stats"}},
		{examination{
			name: "events of an engine that connects", config: doctor.Config{Wait: time.Second},
			want: []string{"problem: event connection"}, says: []string{"the engine connects to this address"},
		}, 32, []string{"--kv-events-config", connects}},
		{examination{
			name: "a clock in the template", want: []string{"problem: chat template"},
			says: []string{"take the time out of the model's chat template"},
		}, 32, []string{"--chat-template", template}},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, start(t, tt.block, tt.flags...)) })
	}
}

// TestRealDoctorSliding examines servers of a model with sliding windows, whose states are kept only where prompts have ended or parted
// unless the server is started otherwise.
func TestRealDoctorSliding(t *testing.T) {
	python, model := needs(t, envSliding)
	for _, tt := range []struct {
		examination
		flags []string
	}{
		{examination{
			name: "as it is", want: []string{"warning: shared prefix"},
			says: []string{"of another one after that", "--prefix-cache-retention-interval"},
		}, nil},
		{examination{name: "points at an interval"}, []string{"--prefix-cache-retention-interval", "128"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.run(t, serve(t, options{
				python: python, model: model, block: 32, blocks: 1024, window: 1900, dtype: "float32", replay: true, more: tt.flags,
			}))
		})
	}
}

func port(endpoint string) string { return endpoint[strings.LastIndexByte(endpoint, ':')+1:] }

// startedWell are examinations of a server with blocks of 128 that is started well.
func startedWell(other *server) []examination {
	return []examination{
		{name: "well", says: []string{"cache_salt: the same salt finds the prompt again"}},
		{
			name: "a prefix below a block", config: doctor.Config{Prefix: "You are a helpful assistant. Answer briefly."},
			want: []string{"problem: your prefix"}, says: []string{"your shared prefix is shorter than one cache block", "a block has 128 tokens"},
		},
		{name: "a prefix of some blocks", config: doctor.Config{Prefix: strings.Repeat("Answer briefly. ", 60)}, says: []string{"whole blocks of 128"}},
		{name: "another model", config: doctor.Config{Model: "huge"}, want: []string{"problem: models"}, says: []string{`"huge" is not served`}},
		{name: "a window below the budget", config: doctor.Config{Budget: 4000}, want: []string{"problem: window"}, says: []string{"1900 tokens"}},
		{
			name: "events at another port", config: doctor.Config{Events: "tcp://127.0.0.1:1", Wait: time.Second},
			want: []string{"problem: event connection", "warning: event replay"}, says: []string{"no listener at tcp://127.0.0.1:1"},
		},
		{
			name: "salts are dropped", faults: []gatewaytest.Fault{gatewaytest.Drops("cache_salt")},
			want: []string{"problem: salts"}, says: []string{"let cache_salt through"},
		},
		{
			name: "salts are new each time", faults: []gatewaytest.Fault{gatewaytest.Salts()},
			want: []string{"problem: prefix caching"}, says: []string{"or sends another cache_salt with each request"},
		},
		{
			name: "stream options are dropped", faults: []gatewaytest.Fault{gatewaytest.Drops("stream_options")},
			want: []string{"problem: streaming usage"}, says: []string{"let stream_options.include_usage through"},
		},
		{
			name: "the time in front", faults: []gatewaytest.Fault{gatewaytest.Dates()},
			want: []string{"problem: chat template", "problem: prefix caching"}, says: []string{"puts the time"},
		},
		{
			name:   "request IDs are dropped",
			faults: []gatewaytest.Fault{gatewaytest.Drops("request_id", "rid"), gatewaytest.DropsHeader("X-Request-Id")},
			want:   []string{"warning: request ID"}, says: []string{"let X-Request-Id"},
		},
		{
			name: "a gateway that knows only /v1", faults: []gatewaytest.Fault{gatewaytest.Only("/v1/", "/health")},
			want: []string{"warning: tokenizer"}, says: []string{"128 tokens, measured with", "this seems to be a gateway"},
		},
		{name: "two servers in turn", other: other, want: []string{"problem: prefix caching"}, says: []string{"several engines seem to share"}},
	}
}
