package settings_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// TestTraceLayers: file, OpenTelemetry's variables, flags; the later ones win, and what is for traces over what is for all.
func TestTraceLayers(t *testing.T) {
	file := write(t, "r.yaml", "trace:\n  endpoint: http://file:4318\n  headers: a=file\n  sample: 0.5\n")
	const base, traces = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	cases := []struct {
		name string
		env  []string
		want settings.Trace
	}{
		{"file", nil, settings.Trace{Endpoint: "http://file:4318", Headers: "a=file", Sample: 0.5}},
		{
			"empty variables",
			[]string{base, "", traces, " ", "OTEL_TRACES_SAMPLER", ""},
			settings.Trace{Endpoint: "http://file:4318", Headers: "a=file", Sample: 0.5},
		},
		{
			"for everything",
			[]string{base, "http://env:4318", "OTEL_EXPORTER_OTLP_HEADERS", "a=env"},
			settings.Trace{Endpoint: "http://env:4318/v1/traces", Headers: "a=env", Sample: 0.5},
		},
		{
			"below a path",
			[]string{base, "https://env/otlp/"},
			settings.Trace{Endpoint: "https://env/otlp/v1/traces", Headers: "a=file", Sample: 0.5},
		},
		{
			"for traces",
			[]string{
				base,
				"http://env:4318",
				traces,
				"http://traces/here",
				"OTEL_EXPORTER_OTLP_HEADERS",
				"a=env",
				"OTEL_EXPORTER_OTLP_TRACES_HEADERS",
				"a=traces",
			},
			settings.Trace{Endpoint: "http://traces/here", Headers: "a=traces", Sample: 0.5},
		},
		{
			"for traces, as it is",
			[]string{traces, "http://traces:4318"},
			settings.Trace{Endpoint: "http://traces:4318/", Headers: "a=file", Sample: 0.5},
		},
		{"switched off", []string{base, "http://env:4318", "OTEL_SDK_DISABLED", "TRUE"}, settings.Trace{Headers: "a=file", Sample: 0.5}},
		{"no exporter", []string{traces, "http://env:4318", "OTEL_TRACES_EXPORTER", "none"}, settings.Trace{Headers: "a=file", Sample: 0.5}},
		{"all", []string{"OTEL_TRACES_SAMPLER", "always_on"}, settings.Trace{Endpoint: "http://file:4318", Headers: "a=file", Sample: 1}},
		{"none", []string{"OTEL_TRACES_SAMPLER", "parentbased_always_off"}, settings.Trace{Endpoint: "http://file:4318", Headers: "a=file"}},
		{
			"share",
			[]string{"OTEL_TRACES_SAMPLER", "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG", "0.125"},
			settings.Trace{Endpoint: "http://file:4318", Headers: "a=file", Sample: 0.125},
		},
		{
			"no share given",
			[]string{"OTEL_TRACES_SAMPLER", "traceidratio"},
			settings.Trace{Endpoint: "http://file:4318", Headers: "a=file", Sample: 1},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := settings.Source{File: file, Env: env(c.env...)}.Load()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.Trace); diff != "" {
				t.Error(diff)
			}
		})
	}
	c, err := settings.Source{
		File:  file,
		Env:   env(base, "http://env:4318"),
		Flags: func(c *settings.Config) error { c.Trace.Endpoint = "http://flag"; return nil },
	}.Load()
	if err != nil || c.Trace.Endpoint != "http://flag" {
		t.Error(c.Trace, err)
	}
	if d := settings.Default().Trace; d != (settings.Trace{Sample: 1}) {
		t.Error("default:", d)
	}
}

// TestBadTrace: an error names the field or variable, and never a header.
func TestBadTrace(t *testing.T) {
	for text, want := range map[string][]string{
		"{endpoint: 'localhost:4318'}":                                            {`trace.endpoint "localhost:4318"`, "http or https"},
		"{endpoint: 'http://:4318'}":                                              {`trace.endpoint "http://:4318"`, "no host"},
		"{endpoint: 'http://h/v1/traces?key=1'}":                                  {"trace.endpoint", "query"},
		"{endpoint: 'http://user:hush@h/'}":                                       {"trace.endpoint", "trace.headers"},
		"{endpoint: 'http://h', headers: 'hush'}":                                 {"trace.headers [redacted]: header 1"},
		"{endpoint: 'http://h', headers: 'a=hush', headers_file: does-not-exist}": {"trace.headers", "both", "does-not-exist"},
		"{headers_file: does-not-exist}":                                          {"trace.headers", "does-not-exist"},
		"{sample: 1.5}":                                                           {"trace.sample 1.5", "0 to 1"},
		"{sample: half}":                                                          {"line 1", "trace.sample", `"half"`},
		"{samples: 1}":                                                            {"line 1", "trace.samples", "unknown"},
	} {
		_, err := settings.Source{File: write(t, "r.yaml", "trace: "+text+"\n")}.Load()
		if !errors.Is(err, settings.ErrBadConfig) {
			t.Errorf("%s: %v", text, err)
			continue
		}
		testkit.Contains(t, text, err.Error(), want...)
		if strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: the error shows a secret: %v", text, err)
		}
	}
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://", "OTEL_TRACES_SAMPLER": "jaeger_remote",
	} {
		_, err := settings.Source{Env: env(name, value)}.Load()
		if !errors.Is(err, settings.ErrBadConfig) || !strings.Contains(err.Error(), name+" "+`"`+value+`"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (settings.Source{Env: env("OTEL_TRACES_SAMPLER", "traceidratio", "OTEL_TRACES_SAMPLER_ARG", "2")}).Load(); !errors.Is(
		err,
		settings.ErrBadConfig,
	) ||
		!strings.Contains(err.Error(), `OTEL_TRACES_SAMPLER_ARG "2"`) {
		t.Error(err)
	}
	c := settings.Default()
	c.Trace.Sample = math.NaN()
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "trace.sample NaN") {
		t.Error(err)
	}
}

// TestTraceSecrets: headers come from a file, and are shown nowhere.
func TestTraceSecrets(t *testing.T) {
	file := write(t, "headers", "Authorization=Bearer%20hush\n")
	c, err := settings.Source{File: write(t, "r.yaml", "trace: {endpoint: 'http://h:4318', headers_file: '"+file+"'}\n")}.Load()
	if err != nil || c.Trace.Headers.Reveal() != "Authorization=Bearer%20hush" || c.Trace.HeadersFile != "" {
		t.Fatal(c.Trace, err)
	}
	c.Trace.Endpoint = "http://user:hush@h:4318" // Validate refuses it
	for _, text := range []string{c.String(), c.LogValue().String(), fmt.Sprintf("%#v", c.Trace.Headers)} {
		if strings.Contains(text, "hush") {
			t.Error(text)
		}
	}
	c = settings.Default()
	c.Trace.Headers = "a=hush"
	testkit.Contains(t, "warnings", strings.Join(c.Warnings(), "\n"), "trace.headers has no effect without trace.endpoint")
}
