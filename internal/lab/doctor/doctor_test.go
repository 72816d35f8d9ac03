package doctor_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/null"
	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/internal/lab/doctor"
)

// The stand-in's PUB socket, the library's, never ends the goroutine that sends.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/go-zeromq/zmq4.(*pubMWriter).run"))
}

var update = flag.Bool("update", false, "rewrite the goldens")

// examine runs the doctor with short waits.
func examine(t *testing.T, cfg doctor.Config) *doctor.Report {
	t.Helper()
	if cfg.Wait == 0 {
		cfg.Wait = 2 * time.Second // only waited out where nothing comes
	}
	n := 0
	cfg.Nonce = func() string { n++; return fmt.Sprintf("%026d", n) }
	report, err := doctor.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// wrong lists the checks that are problems or warnings.
func wrong(r *doctor.Report) []string {
	var list []string
	for _, c := range r.Checks {
		if c.Result == doctor.Problem || c.Result == doctor.Warning {
			list = append(list, string(c.Result)+": "+c.Name)
		}
	}
	return list
}

func find(t *testing.T, r *doctor.Report, name string) doctor.Check {
	t.Helper()
	for _, c := range r.Checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no check %q", name)
	return doctor.Check{}
}

// well returns a fake that is set up well.
func well(t *testing.T, kind doctor.Kind) *fake {
	t.Helper()
	f := &fake{kind: kind, block: 16, window: 8192, slots: 4}
	if kind == doctor.LlamaCPP {
		f.block = 1
	}
	if kind == doctor.VLLM || kind == doctor.SGLang {
		events, replay := freeTCP(t), freeTCP(t)
		f.pub = publish(t, events, replay, false)
		f.point(events, replay)
	}
	return f
}

func port(endpoint string) string { return endpoint[strings.LastIndexByte(endpoint, ':')+1:] }

// point is where events are published, under a wildcard as engines that listen have it.
func (f *fake) point(events, replay string) {
	if f.kind == doctor.SGLang {
		f.sources = fmt.Sprintf(`{"publisher":"zmq","endpoint_host":"*","endpoint_port_base":%s,"block_size":%d,"dp_size":1`, port(events),
			f.block)
		if replay != "" {
			f.sources += `,"replay_endpoint_port_base":` + port(replay)
		}
		f.sources += "}"
		return
	}
	if replay != "" {
		replay = "tcp://*:" + port(replay)
	}
	f.sources = fmt.Sprintf(`{"0":{"publisher":"zmq","endpoint":"tcp://*:%s","replay_endpoint":%q,"topic":"kv@fake"}}`, port(events), replay)
}

func TestWell(t *testing.T) {
	for _, kind := range []doctor.Kind{doctor.VLLM, doctor.SGLang, doctor.LlamaCPP, doctor.Other} {
		t.Run(string(kind), func(t *testing.T) {
			r := examine(t, doctor.Config{Engine: serve(t, well(t, kind)), Budget: 4000})
			if list := wrong(r); list != nil || r.Kind != kind {
				t.Errorf("%s: %v\n%s", r.Kind, list, printed(r))
			}
		})
	}
}

func printed(r *doctor.Report) string {
	var b strings.Builder
	_ = r.Print(&b)
	return b.String()
}

// TestOneThingWrong spoils one thing at a time: exactly that must be named, and what to do about it.
func TestOneThingWrong(t *testing.T) {
	tests := []struct {
		name  string
		kind  doctor.Kind
		spoil func(*testing.T, *fake, *doctor.Config)
		want  []string
		says  string // in what to do, or what was seen
	}{
		{"loading", doctor.VLLM, set(func(f *fake) { f.sick = true }), []string{"problem: health"}, "503"},
		{"key", doctor.VLLM, set(func(f *fake) { f.refuses = true }), []string{"problem: health"}, "--api-key"},
		{
			"vLLM without details", doctor.VLLM, set(func(f *fake) { f.noDetails = true }),
			[]string{"problem: token details"},
			"--enable-prompt-tokens-details",
		},
		{
			"SGLang without report", doctor.SGLang, set(func(f *fake) { f.noDetails = true }),
			[]string{"problem: token details"},
			"--enable-cache-report",
		},
		{
			"vLLM without cache", doctor.VLLM, set(func(f *fake) { f.noCache = true }),
			[]string{"problem: prefix caching"},
			"--no-enable-prefix-caching",
		},
		{
			"SGLang without cache", doctor.SGLang, set(func(f *fake) { f.noCache = true }),
			[]string{"problem: prefix caching"},
			"--disable-radix-cache",
		},
		{
			"llama.cpp without cache", doctor.LlamaCPP, set(func(f *fake) { f.noCache = true }),
			[]string{"problem: prefix caching"},
			"--no-cache-prompt",
		},
		{"whole prompts only", doctor.VLLM, set(func(f *fake) { f.wholeOnly = true }), []string{"problem: shared prefix"}, "full attention"},
		{
			"two behind one address", doctor.Other, set(func(f *fake) { f.replicas = 2 }),
			[]string{"problem: prefix caching"},
			"share this address",
		},
		{"no usage", doctor.Other, set(func(f *fake) { f.noUsage = true }), []string{"problem: streaming usage"}, "gateway"},
		{
			"no usage in streams", doctor.VLLM, set(func(f *fake) { f.noStreamUsage = true }),
			[]string{"problem: streaming usage"},
			"include_usage",
		},
		{"other IDs", doctor.VLLM, set(func(f *fake) { f.otherIDs = true }), []string{"warning: request ID"}, "X-Request-Id"},
		{"SGLang without metrics", doctor.SGLang, set(func(f *fake) { f.noMetrics = true }), []string{"warning: metrics"}, "--enable-metrics"},
		{
			"metrics without counters", doctor.VLLM, set(func(f *fake) { f.noCounters = true }),
			[]string{"warning: metrics"},
			"--disable-log-stats",
		},
		{
			"neither details nor counters", doctor.VLLM, set(func(f *fake) { f.noCounters, f.noDetails = true, true }),
			[]string{"warning: metrics", "problem: token details"},
			"and the metrics count no prompts",
		},
		{"salts left out", doctor.VLLM, set(func(f *fake) { f.noSalts = true }), []string{"problem: salts"}, "let cache_salt through"},
		{
			"a prefix below a block", doctor.VLLM,
			func(_ *testing.T, f *fake, c *doctor.Config) { f.block, c.Prefix = 128, "Answer briefly." },
			[]string{"problem: your prefix"},
			"your shared prefix is shorter than one cache block",
		},
		{"other tokenizer", doctor.VLLM, set(func(f *fake) { f.otherTokenizer = true }), []string{"problem: tokenizer"}, "not of one model"},
		{
			"clock in the template", doctor.SGLang, set(func(f *fake) { f.clockInTemplate = true }),
			[]string{"problem: chat template"},
			"chat template",
		},
		{"slow clock", doctor.VLLM, set(func(f *fake) { f.skew = -time.Hour }), []string{"warning: clock"}, "-1h0m"},
		{"long blocks", doctor.VLLM, set(func(f *fake) { f.block = 784 }), []string{"warning: block size"}, "784 tokens"},
		{
			"other model", doctor.VLLM, func(_ *testing.T, _ *fake, c *doctor.Config) { c.Model = "huge" },
			[]string{"problem: models"},
			`"huge" is not served; served: tiny`,
		},
		{"budget", doctor.SGLang, func(_ *testing.T, _ *fake, c *doctor.Config) { c.Budget = 9000 }, []string{"problem: window"}, "8192"},
		{"one slot", doctor.LlamaCPP, set(func(f *fake) { f.slots = 1 }), []string{"warning: slots"}, "--parallel"},
		{"slots hidden", doctor.LlamaCPP, set(func(f *fake) { f.hideSlots = true }), []string{"warning: slots"}, "--slots"},
		{"llama.cpp shifts", doctor.LlamaCPP, set(func(f *fake) { f.shifts = true }), []string{"warning: cache reuse"}, "--cache-reuse"},
		{"llama.cpp without metrics", doctor.LlamaCPP, set(func(f *fake) { f.noMetrics = true }), []string{"warning: metrics"}, "--metrics"},

		{
			"slot files off", doctor.LlamaCPP, func(t *testing.T, _ *fake, c *doctor.Config) { c.SlotDir = t.TempDir() },
			[]string{"problem: slot files"},
			"--slot-save-path",
		},
		{"slot files not used", doctor.LlamaCPP, func(t *testing.T, f *fake, c *doctor.Config) {
			c.SlotDir, f.windows = t.TempDir(), true
			f.slotDir = c.SlotDir
		}, []string{"problem: slot files"}, "#26676"},
		{
			"slot files elsewhere", doctor.LlamaCPP,
			func(t *testing.T, f *fake, c *doctor.Config) { c.SlotDir, f.slotDir = t.TempDir(), t.TempDir() },
			[]string{"problem: slot files"},
			"another folder",
		},

		{"no events", doctor.VLLM, set(func(f *fake) { f.sources = "{}" }), []string{"warning: events"}, "--kv-events-config"},
		{"nobody publishes", doctor.VLLM, func(t *testing.T, f *fake, _ *doctor.Config) {
			at, replay := freeTCP(t), freeTCP(t)
			f.pub = publish(t, at, replay, true)
			f.point(at, replay)
		}, []string{"problem: event connection"}, "let the port through"},
		{"an engine that connects", doctor.VLLM, func(t *testing.T, f *fake, _ *doctor.Config) {
			at, replay := freeTCP(t), freeTCP(t)
			f.pub = publish(t, at, replay, true)
			f.sources = fmt.Sprintf(`{"0":{"publisher":"zmq","endpoint":%q,"replay_endpoint":%q,"topic":"kv@fake"}}`, at, replay)
		}, []string{"problem: event connection"}, `"endpoint":"tcp://*:`},
		{"events without replay", doctor.VLLM, func(t *testing.T, f *fake, _ *doctor.Config) {
			at := freeTCP(t)
			f.pub = publish(t, at, "", false)
			f.point(at, "")
		}, []string{"warning: event replay"}, "replay_endpoint"},
		{
			"nothing is published", doctor.VLLM, set(func(f *fake) { f.pub.mute = true }),
			[]string{"problem: live events"},
			"enable_kv_cache_events",
		},
		{
			"events of another engine", doctor.SGLang, set(func(f *fake) { f.pub.foreign = true }),
			[]string{"problem: live events"},
			"another engine",
		},
		{"no events at all", doctor.VLLM, set(func(f *fake) { f.pub.garbage = true }), []string{"problem: event decoding"}, "kvevents"},
		{"replay closed", doctor.VLLM, func(t *testing.T, f *fake, _ *doctor.Config) {
			at := freeTCP(t)
			f.pub = publish(t, at, "", false)
			f.point(at, freeTCP(t))
		}, []string{"problem: event replay"}, "let the port through"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := well(t, tt.kind)
			cfg := doctor.Config{}
			tt.spoil(t, f, &cfg)
			cfg.Engine = serve(t, f)
			if f.pub != nil && f.pub.mute {
				cfg.Wait = 200 * time.Millisecond
			}
			r := examine(t, cfg)
			if got := wrong(r); !slices.Equal(got, tt.want) {
				t.Errorf("%q, want %q\n%s", got, tt.want, printed(r))
			}
			if !strings.Contains(printed(r), tt.says) {
				t.Errorf("it does not say %q\n%s", tt.says, printed(r))
			}
			for _, c := range r.Checks {
				if c.Result == doctor.Problem && c.Do == "" {
					t.Errorf("%s: nothing to do about it", c.Name)
				}
			}
		})
	}
}

// TestRanks: of two ranks the one is named that something is wrong with, also where the other one is well.
func TestRanks(t *testing.T) {
	at := func(host, endpoint string) string { return fmt.Sprintf("tcp://%s:%s", host, port(endpoint)) }
	for _, bad := range []int{0, 1} {
		for _, tt := range []struct {
			name string
			want []string
			says string
			set  func(pub *publisher, l *listens)
		}{
			{"well", nil, "2 of 2 connected", func(*publisher, *listens) {}},
			{
				"not there",
				[]string{"problem: event connection", "problem: event replay"},
				"no listener at %s",
				func(_ *publisher, l *listens) { l.events, l.replay = freeTCP(t), freeTCP(t) },
			},
			{
				"connects",
				[]string{"problem: event connection"},
				"no listener at %s",
				func(_ *publisher, l *listens) { l.events, l.host = freeTCP(t), "127.0.0.1" },
			},
			{
				"is not heard",
				[]string{"problem: live events"},
				"who listens at %s is not this rank",
				func(pub *publisher, _ *listens) { pub.mute = true },
			},
			{
				"is not heard, and names a host",
				[]string{"problem: live events"},
				"who listens at %s is not this rank",
				func(pub *publisher, l *listens) { pub.mute, l.host = true, "127.0.0.1" },
			},
		} {
			t.Run(fmt.Sprintf("rank %d %s", bad, tt.name), func(t *testing.T) {
				t.Parallel()
				f := &fake{kind: doctor.VLLM, block: 16, window: 8192}
				var where [2]listens
				for i := range where {
					where[i] = listens{host: "*", events: freeTCP(t), replay: freeTCP(t)}
					pub := publish(t, where[i].events, where[i].replay, false)
					if i == bad {
						tt.set(pub, &where[i])
					}
					if i == 0 {
						f.pub = pub
					} else {
						f.other = pub
					}
				}
				var ranks []string
				for i, w := range where {
					ranks = append(ranks,
						fmt.Sprintf(`"%d":{"publisher":"zmq","endpoint":%q,"replay_endpoint":%q,"topic":"kv@fake"}`, i, at(w.host, w.events),
							at(w.host, w.replay)))
				}
				f.sources = "{" + strings.Join(ranks, ",") + "}"
				r := examine(t, doctor.Config{Engine: serve(t, f), Wait: 300 * time.Millisecond})
				if got := wrong(r); !slices.Equal(got, tt.want) {
					t.Errorf("%q, want %q\n%s", got, tt.want, printed(r))
				}
				says := tt.says
				if tt.want != nil {
					says = fmt.Sprintf("rank %d: ", bad)
					if name := fmt.Sprintf(tt.says, where[bad].events); !strings.Contains(printed(r), name) {
						t.Errorf("it does not say %q\n%s", name, printed(r))
					}
				}
				if !strings.Contains(printed(r), says) {
					t.Errorf("it does not say %q\n%s", says, printed(r))
				}
			})
		}
	}
}

// TestHostileReplay: what answers at the replay endpoint cannot make the doctor allocate what it likes.
func TestHostileReplay(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var answering sync.WaitGroup
	answering.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if z, err := zmq4.Open(c, null.Security(), zmq4.Router, nil, true, nil); err == nil {
				_, _ = z.RecvMsg()
				_, _ = c.Write(binary.BigEndian.AppendUint64([]byte{2}, 1<<40)) // a frame of that length
				_, _ = io.Copy(io.Discard, c)                                   // until the other end closes
			}
			_ = c.Close()
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		answering.Wait()
	})
	f := well(t, doctor.VLLM)
	at := freeTCP(t)
	f.pub = publish(t, at, "", false)
	f.point(at, "tcp://"+l.Addr().String())
	r := examine(t, doctor.Config{Engine: serve(t, f)})
	if got := wrong(r); !slices.Equal(got, []string{"problem: event replay"}) ||
		!strings.Contains(find(t, r, "event replay").Saw, "too long") {
		t.Errorf("%q\n%s", got, printed(r))
	}
}

// listens is where a rank of a fake says to listen.
type listens struct{ host, events, replay string }

func set(spoil func(*fake)) func(*testing.T, *fake, *doctor.Config) {
	return func(_ *testing.T, f *fake, _ *doctor.Config) { spoil(f) }
}
