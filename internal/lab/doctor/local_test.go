package doctor_test

import (
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	publishing "github.com/ragpilot/ragpilot/engines/kvevents/publish"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/local/localtest"
	"github.com/ragpilot/ragpilot/engines/local/server"
	"github.com/ragpilot/ragpilot/internal/lab/doctor"
	"github.com/ragpilot/ragpilot/internal/testkit/gatewaytest"
)

// localEngine starts the local engine over a tiny model, with events, and returns its URL. It ends with the test.
func localEngine(t *testing.T, change func(*local.Config)) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := localtest.WriteModel(file, 1); err != nil {
		t.Fatal(err)
	}
	events, err := publishing.Listen(t.Context(), publishing.Config{Endpoint: "tcp://127.0.0.1:0", Replay: "tcp://127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	cfg := local.Config{Model: file, Served: "tiny", Threads: 1, OnCache: func(list []kvevents.Event) {
		if err := events.Publish(list); err != nil {
			t.Error(err)
		}
	}}
	if change != nil {
		change(&cfg)
	}
	engine, err := local.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.OnCache == nil {
		_ = events.Close()
		events = nil
	}
	api := server.New(engine, server.Config{Version: "ragpilot test", Events: events})
	http := httptest.NewServer(api)
	t.Cleanup(func() {
		http.CloseClientConnections()
		http.Close()
		_ = engine.Close()
		if events != nil {
			_ = events.Close()
		}
	})
	return http.URL
}

// TestLocalEngine examines the real local engine, as it is and with one thing wrong at a time, in it, in front of it or in what is asked.
func TestLocalEngine(t *testing.T) {
	for _, tt := range []misconfigured{
		{name: "well"},
		{name: "a gateway that is well", faults: []gatewaytest.Fault{gatewaytest.DropsHeader("Accept-Language")}},
		{
			name: "a gateway that knows only /v1", faults: []gatewaytest.Fault{gatewaytest.Only("/v1/", "/health")},
			want: []string{"warning: tokenizer"}, says: []string{"16 tokens, measured with", "usage 592, estimate 194"},
		},
		{
			name: "salts are dropped", faults: []gatewaytest.Fault{gatewaytest.Drops("cache_salt")},
			want: []string{"problem: salts"}, says: []string{"after it was asked without", "let cache_salt through"},
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
			name: "details are hidden", faults: []gatewaytest.Fault{gatewaytest.HidesDetails()},
			want: []string{"problem: token details"}, says: []string{"the metrics count"},
		},
		{
			name:   "request IDs are dropped",
			faults: []gatewaytest.Fault{gatewaytest.Drops("request_id", "rid"), gatewaytest.DropsHeader("X-Request-Id")},
			want:   []string{"warning: request ID"}, says: []string{"let X-Request-Id"},
		},
		{
			name: "the time in front", faults: []gatewaytest.Fault{gatewaytest.Dates()},
			want: []string{"problem: chat template", "problem: prefix caching"}, says: []string{"puts the time"},
		},
		{
			name: "two engines in turn", engines: 2,
			want: []string{"problem: prefix caching"}, says: []string{"several engines seem to share this address"},
		},
		{
			name: "another model", config: doctor.Config{Model: "huge"},
			want: []string{"problem: models"}, says: []string{`"huge" is not served; served: tiny`},
		},
		{
			name: "a window below the budget", config: doctor.Config{Budget: 4000},
			want: []string{"problem: window"}, says: []string{"1024 tokens of prompt and answer, below the budget of 4000"},
		},
		{
			name: "a prefix below a block", config: doctor.Config{Prefix: "Hi."},
			want: []string{"problem: your prefix"}, says: []string{"your shared prefix is shorter than one cache block", "a block has 16 tokens"},
		},
		{
			name: "events at another port", config: doctor.Config{Events: "tcp://127.0.0.1:1"},
			want: []string{"problem: event connection", "warning: event replay"}, says: []string{"no listener at tcp://127.0.0.1:1"},
		},
	} {
		tt.config.ProbeTokens = 300
		tt.run(t, func(t *testing.T) string { return localEngine(t, nil) })
	}
	silent := misconfigured{
		name: "no events", config: doctor.Config{ProbeTokens: 300},
		want: []string{"warning: events"}, says: []string{"start it with --kv-events tcp://"},
	}
	silent.run(t, func(t *testing.T) string { return localEngine(t, func(c *local.Config) { c.OnCache = nil }) })
}

// misconfigured is a real engine with one thing wrong: in how it is started, in a gateway in front of it, or in what is asked.
type misconfigured struct {
	name    string
	args    []string // of the engine
	faults  []gatewaytest.Fault
	engines int // that take turns; 0: one
	config  doctor.Config
	want    []string // the checks that are wrong
	says    []string // in what was seen, or in what to do
}

// run examines the engine that start starts.
func (m misconfigured) run(t *testing.T, start func(*testing.T) string) {
	t.Helper()
	t.Run(m.name, func(t *testing.T) {
		t.Parallel()
		var engines []string
		for range max(m.engines, 1) {
			engines = append(engines, start(t))
		}
		m.config.Engine = engines[0]
		if len(engines) > 1 || m.faults != nil {
			m.config.Engine = gatewaytest.Start(t, engines, m.faults...)
		}
		m.check(t)
	})
}

// check examines the engine, and compares what is wrong.
func (m *misconfigured) check(t *testing.T) {
	t.Helper()
	r := examine(t, m.config)
	if got := wrong(r); !slices.Equal(got, m.want) {
		t.Errorf("%q, want %q\n%s", got, m.want, printed(r))
	}
	for _, says := range m.says {
		if !strings.Contains(printed(r), says) {
			t.Errorf("it does not say %q\n%s", says, printed(r))
		}
	}
}

// TestGatewayOfVLLM: what a gateway in front of a vLLM server does is not blamed on the server's flags, nor on another engine.
func TestGatewayOfVLLM(t *testing.T) {
	for _, tt := range []misconfigured{
		{
			name: "only /v1", faults: []gatewaytest.Fault{gatewaytest.Only("/v1/", "/health")},
			says: []string{"this seems to be a gateway", "16 tokens, measured with"},
		},
		{
			name: "the time in front", faults: []gatewaytest.Fault{gatewaytest.Dates()},
			want: []string{"problem: chat template", "problem: prefix caching"}, says: []string{"whose they are is not known"},
		},
	} {
		tt.run(t, func(t *testing.T) string { return serve(t, well(t, doctor.VLLM)) })
	}
}
