package wiretest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// Runner plays examples. It may be used by parallel tests; its fields must not change while it is.
type Runner struct {
	// Start returns the base address of a server that nobody has used, set up as the example's Mode says, with the engine
	// at that address.
	Start func(t testing.TB, ex Example, engine string) string
	// Rules are the exceptions; of several that apply the first one counts.
	Rules []Rule
	// Observe sees each exchange after it was compared; may be nil.
	Observe func(t testing.TB, ex Example, step int, x Exchange)

	mu   sync.Mutex
	used []bool // by rule; guarded by mu
}

// Exchange is what was sent and what came back, JSON decoded as by encoding/json. In Recorded our IDs stand for
// placeholders, if they are known.
type Exchange struct {
	Request  any // nil: none, or no JSON
	Status   int
	Header   http.Header
	Body     any   // {"__text__": …} if it is no JSON
	Recorded any   // the recorded body
	Upstream []any // what the engine got, as in Step.UpstreamReceived but with all headers
}

// Run plays an example and reports every difference that no rule allows.
func (r *Runner) Run(t testing.TB, ex Example) {
	t.Helper()
	eng := newEngine(t, ex.engineDown())
	base := r.Start(t, ex, eng.url)
	names := newNames(map[string]string{"upstream": eng.url})
	if ex.hadIndex() {
		for _, s := range []Step{
			{Method: http.MethodPost, Path: "/reorder", Body: map[string]any{"contexts": []any{[]any{1, 2}, []any{3, 4}}}},
			{Method: http.MethodPost, Path: "/reset", Body: map[string]any{}},
		} {
			if x := send(t, base, s, names); x.Status != http.StatusOK {
				t.Fatalf("before the example: %s %s answered %d: %v", s.Method, s.Path, x.Status, x.Body)
			}
		}
	}
	for i, s := range ex.Steps {
		eng.expect(s.UpstreamReply)
		x := send(t, base, s, names)
		x.Upstream = eng.received()
		c := comparison{runner: r, ex: ex, step: i, names: names, exchange: x}
		c.all(s)
		for _, d := range c.differences {
			t.Errorf("step %d, %s: %s", i, s.Endpoint(), d)
		}
		if r.Observe != nil {
			x.Recorded = names.fill(s.Response)
			r.Observe(t, ex, i, x)
		}
	}
}

// send plays the request of a step.
func send(t testing.TB, base string, s Step, names *names) Exchange {
	t.Helper()
	var body []byte
	x := Exchange{Request: names.fill(s.Body)}
	switch {
	case s.RawBody != nil:
		body = []byte(names.fill(*s.RawBody).(string))
	case s.Body != nil:
		var err error
		if body, err = json.Marshal(x.Request); err != nil {
			t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), s.Method, base+names.fill(s.Path).(string), bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, v := range s.Headers {
		req.Header.Set(name, names.fill(v).(string))
	}
	res, err := http.DefaultTransport.RoundTrip(req) // redirects are answers
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	x.Status, x.Header = res.StatusCode, res.Header
	if err := json.Unmarshal(raw, &x.Body); err != nil || !strings.Contains(res.Header.Get("Content-Type"), "json") {
		x.Body = map[string]any{"__text__": string(raw)}
	}
	return x
}
