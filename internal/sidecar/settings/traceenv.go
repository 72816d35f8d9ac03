package settings

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// applyEnv takes over OpenTelemetry's variables, as far as they are settings of ours; package tracing reports the others.
// Those for traces win over those for everything.
func (t *Trace) applyEnv(lookup func(string) (string, bool)) error {
	get := func(name string) string {
		value, _ := lookup(name)
		return strings.TrimSpace(value)
	}
	if err := t.endpointFromEnv(get); err != nil {
		return err
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		if value := get(name); value != "" {
			t.Headers, t.HeadersFile = Secret(value), ""
		}
	}
	const sampler, argument = "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG"
	switch name := get(sampler); strings.TrimPrefix(name, "parentbased_") {
	case "": // also for a prefix alone, which other programs ignore
	case "always_on":
		t.Sample = 1
	case "always_off":
		t.Sample = 0
	case "traceidratio":
		t.Sample = 1
		if value := get(argument); value != "" {
			share, err := strconv.ParseFloat(value, 64)
			if err != nil || !(share >= 0 && share <= 1) {
				return fmt.Errorf("%w: %s %q: want a share from 0 to 1", ErrBadConfig, argument, value)
			}
			t.Sample = share
		}
	default:
		return fmt.Errorf("%w: %s %q: want always_on, always_off or traceidratio, with parentbased_ in front or without",
			ErrBadConfig, sampler, name)
	}
	return nil
}

func (t *Trace) endpointFromEnv(get func(name string) string) error {
	if strings.EqualFold(get("OTEL_SDK_DISABLED"), "true") || get("OTEL_TRACES_EXPORTER") == "none" {
		t.Endpoint = ""
		return nil
	}
	const base, traces = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	name, value := traces, get(traces)
	if value == "" {
		if name, value = base, get(base); value == "" {
			return nil
		}
	}
	var p problems
	if p.checkURL(name, value); len(p) > 0 {
		return errors.Join(p...)
	}
	u, err := url.Parse(value)
	if err != nil {
		return fmt.Errorf("%w: %s: is not a URL", ErrBadConfig, name)
	}
	switch {
	case name == base: // each signal has a path below it
		u = u.JoinPath("v1", "traces")
	case u.Path == "": // taken as it is
		u.Path = "/"
	}
	t.Endpoint = u.String()
	return nil
}
