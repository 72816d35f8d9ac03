package wiretest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// comparison is of one step.
type comparison struct {
	runner      *Runner
	ex          Example
	step        int
	names       *names
	exchange    Exchange
	later       []func() // members whose names are open placeholders: other members may show what these are
	differences []string
}

func (c *comparison) differ(at, format string, args ...any) {
	c.differences = append(c.differences, at+": "+fmt.Sprintf(format, args...))
}

// all compares status, body, headers and what the engine got.
func (c *comparison) all(s Step) {
	c.value("status", float64(s.Status), float64(c.exchange.Status))
	c.headers(s)
	c.upstream(s)
	c.value("body", s.Response, c.exchange.Body)
	for len(c.later) > 0 {
		f := c.later[0]
		c.later = c.later[1:]
		f()
	}
}

// headers compares the recorded headers; of others only ours by name must not be there.
func (c *comparison) headers(s Step) {
	got := map[string]any{}
	for name := range c.exchange.Header {
		low, v := strings.ToLower(name), c.exchange.Header.Get(name)
		if _, recorded := s.ResponseHeaders[low]; !recorded && !strings.HasPrefix(low, "x-contextpilot-") {
			continue
		}
		got[low] = any(v)
		if _, isText := s.ResponseHeaders[low].(string); !isText {
			var parsed any
			if json.Unmarshal([]byte(v), &parsed) == nil {
				got[low] = parsed
			}
		}
	}
	want := s.ResponseHeaders
	if want == nil {
		want = map[string]any{}
	}
	c.value("header", want, got)
}

// upstream compares what the engine got. Of its headers those are compared that were recorded or that the client sent.
func (c *comparison) upstream(s Step) {
	if len(c.exchange.Upstream) > 1 {
		c.differ("upstream", "the engine was asked %d times", len(c.exchange.Upstream))
	}
	want, got := s.UpstreamReceived, any(nil)
	if len(c.exchange.Upstream) > 0 {
		all := maps.Clone(c.exchange.Upstream[0].(map[string]any))
		recorded, _ := want.(map[string]any)
		names, _ := recorded["headers"].(map[string]any)
		headers := map[string]any{}
		for name, v := range all["headers"].(map[string]any) {
			_, was := names[name]
			for sent := range s.Headers {
				was = was || strings.EqualFold(sent, name)
			}
			if was {
				headers[name] = v
			}
		}
		all["headers"] = headers
		got = all
	}
	if want != nil || got != nil {
		c.value("upstream", want, got)
	}
}

// value compares two JSON values. A rule for the place replaces what is wanted.
func (c *comparison) value(at string, want, got any) {
	if rule := c.runner.rule(c.ex, c.step, at); rule != nil {
		c.byRule(rule, at, want, got)
		return
	}
	c.plain(at, want, got)
}

func (c *comparison) byRule(rule *Rule, at string, want, got any) {
	switch rule.Kind {
	case Free:
		if kind(c.names.fill(want)) != kind(got) {
			c.differ(at, "got %s, want any %s", show(got), kind(want))
		}
		return
	case AnyOrder:
		c.anyOrder(at, want, got)
		return
	}
	if reflect.DeepEqual(c.names.fill(want), got) {
		c.differ(at, "is listed as different (%s) but is as recorded: %s", rule.Why, show(got))
		return
	}
	if rule.Check != nil {
		x := c.exchange
		x.Recorded = c.names.fill(c.ex.Steps[c.step].Response)
		if err := rule.Check(x, got); err != nil {
			c.differ(at, "%v (ours: %s)", err, rule.Why)
		}
		return
	}
	c.plain(at, normal(rule.Want), got)
}

func (c *comparison) plain(at string, want, got any) {
	switch w := want.(type) {
	case map[string]any:
		if g, ok := got.(map[string]any); ok {
			c.object(at, w, g)
			return
		}
	case []any:
		if g, ok := got.([]any); ok {
			if len(g) != len(w) {
				c.differ(at, "%d items, want %d: got %s, want %s", len(g), len(w), show(got), show(c.names.fill(want)))
				return
			}
			for i := range w {
				c.value(at+"/"+strconv.Itoa(i), w[i], g[i])
			}
			return
		}
	case string:
		if w == "<num>" {
			if _, ok := got.(float64); !ok {
				c.differ(at, "got %s, want a number", show(got))
			}
			return
		}
		if g, ok := got.(string); ok {
			if err := c.names.match(w, g); err != nil {
				c.differ(at, "%v", err)
			}
			return
		}
	default:
		if reflect.DeepEqual(want, got) {
			return
		}
	}
	c.differ(at, "got %s, want %s", show(got), show(c.names.fill(want)))
}

func (c *comparison) object(at string, want, got map[string]any) {
	left := maps.Clone(got)
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if c.names.open(k) {
			c.later = append(c.later, func() {
				if g, ok := got[c.names.fill(k).(string)]; ok {
					c.value(at+"/"+k, want[k], g)
				} else {
					c.differ(at, "no member %s in %s", c.names.fill(k), show(got))
				}
			})
			for g := range left { // some member it is
				if !slices.Contains(slices.Collect(maps.Keys(want)), g) {
					delete(left, g)
					break
				}
			}
			continue
		}
		name := c.names.fill(k).(string)
		g, ok := left[name]
		delete(left, name)
		switch {
		case ok:
			c.value(at+"/"+k, want[k], g)
		default:
			if rule := c.runner.rule(c.ex, c.step, at+"/"+k); rule == nil || rule.Want != Absent {
				c.differ(at+"/"+k, "missing, want %s", show(c.names.fill(want[k])))
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(left)) {
		rule := c.runner.rule(c.ex, c.step, at+"/"+k)
		switch {
		case rule == nil:
			c.differ(at+"/"+k, "is not in the recording: %s", show(left[k]))
		case rule.Kind == Ours:
			c.byRule(rule, at+"/"+k, Absent, left[k])
		}
	}
}

// anyOrder compares lists of strings or numbers without their order. Known IDs find their like first, the rest are
// learned as they come.
func (c *comparison) anyOrder(at string, want, got any) {
	w, ok := want.([]any)
	g, ok2 := got.([]any)
	if !ok || !ok2 || len(w) != len(g) {
		c.differ(at, "got %s, want in any order %s", show(got), show(c.names.fill(want)))
		return
	}
	left := slices.Clone(g)
	var open []string
	for _, x := range w {
		if s, isText := x.(string); isText && c.names.open(s) {
			open = append(open, s)
			continue
		}
		x = c.names.fill(x)
		i := slices.IndexFunc(left, func(y any) bool { return reflect.DeepEqual(x, y) })
		if i < 0 {
			c.differ(at, "got %s, want in any order %s", show(got), show(c.names.fill(want)))
			return
		}
		left = slices.Delete(left, i, i+1)
	}
	for i, s := range open {
		c.plain(at+"/"+strconv.Itoa(i), s, left[i])
	}
}

func kind(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case string:
		if v == "<num>" {
			return "number"
		}
		return "string"
	case []any:
		return "list"
	case map[string]any:
		return "object"
	}
	return fmt.Sprintf("%T", v)
}

// normal turns what a rule's author wrote into decoded JSON.
func normal(v any) any {
	raw, err := json.Marshal(v)
	if err != nil {
		return v
	}
	var out any
	if json.Unmarshal(raw, &out) != nil {
		return v
	}
	return out
}

func show(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if len(raw) > 600 {
		raw = append(raw[:600], "…"...)
	}
	return string(raw)
}
