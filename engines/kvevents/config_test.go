package kvevents_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/engines/kvevents"
)

func TestConfigIsChecked(t *testing.T) {
	sink := func(kvevents.Publisher) kvevents.Sink { return &tape{} }
	good := kvevents.Source{Endpoint: "tcp://127.0.0.1:5557"}
	for name, cfg := range map[string]kvevents.Config{
		"no sink":       {Sources: []kvevents.Source{good}},
		"no source":     {Sink: sink},
		"a name twice":  {Sink: sink, Sources: []kvevents.Source{good, good}},
		"no scheme":     {Sink: sink, Sources: []kvevents.Source{{Endpoint: "127.0.0.1:5557"}}},
		"a scheme":      {Sink: sink, Sources: []kvevents.Source{{Endpoint: "udp://127.0.0.1:5557"}}},
		"no port":       {Sink: sink, Sources: []kvevents.Source{{Endpoint: "tcp://127.0.0.1"}}},
		"port 0":        {Sink: sink, Sources: []kvevents.Source{{Endpoint: "tcp://127.0.0.1:0"}}},
		"a port's name": {Sink: sink, Sources: []kvevents.Source{{Endpoint: "tcp://127.0.0.1:http"}}},
		"dialling *":    {Sink: sink, Sources: []kvevents.Source{{Endpoint: "tcp://*:5557"}}},
		"no path":       {Sink: sink, Sources: []kvevents.Source{{Endpoint: "ipc://"}}},
		"replay":        {Sink: sink, Sources: []kvevents.Source{{Endpoint: "tcp://127.0.0.1:5557", Replay: "tcp://*:5558"}}},
	} {
		if _, err := kvevents.New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		} else {
			t.Log(err)
		}
	}
	for _, endpoint := range []string{"tcp://*:5557", "tcp://[::1]:5557", "ipc://@abstract"} {
		if _, err := kvevents.New(kvevents.Config{Sink: sink, Sources: []kvevents.Source{{Endpoint: endpoint, Listen: true}}}); err != nil {
			t.Error(err)
		}
	}
}

func TestRanks(t *testing.T) {
	got, err := kvevents.Ranks(kvevents.Source{Name: "r", Endpoint: "tcp://h:5557", Replay: "tcp://h:6557", Topic: "kv@"}, 2)
	want := []kvevents.Source{
		{Name: "r/dp0", Endpoint: "tcp://h:5557", Replay: "tcp://h:6557", Topic: "kv@", Rank: 0},
		{Name: "r/dp1", Endpoint: "tcp://h:5558", Replay: "tcp://h:6558", Topic: "kv@", Rank: 1},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := kvevents.Ranks(kvevents.Source{Endpoint: "ipc:///a"}, 1); err != nil {
		t.Error(err)
	}
	for _, bad := range []kvevents.Source{{Endpoint: "ipc:///a:1"}, {Endpoint: "tcp://h:5557", Replay: "ipc:///a"}} {
		if _, err := kvevents.Ranks(bad, 2); !errors.Is(err, kvevents.ErrEndpoint) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if _, err := kvevents.Ranks(kvevents.Source{Endpoint: "tcp://h:5557"}, 0); err == nil {
		t.Error("no rank: no error")
	}
}

// TestCannotListen: an endpoint that is taken is an error at once.
func TestCannotListen(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sub, err := kvevents.New(kvevents.Config{
		Sources: []kvevents.Source{
			{Name: "dials", Endpoint: freePort(t)},
			{Name: "listens", Endpoint: "tcp://" + l.Addr().String(), Listen: true},
		},
		Sink: func(kvevents.Publisher) kvevents.Sink { return &tape{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := sub.Run(context.Background()); err == nil {
		t.Error("no error")
	}
	if err := sub.Run(context.Background()); err == nil {
		t.Error("run twice: no error")
	}
}

// TestNobodyThere: the status says why there is no connection.
func TestNobodyThere(t *testing.T) {
	sub := run(t, kvevents.Config{
		Sources: []kvevents.Source{{Name: "r", Endpoint: freePort(t)}},
		Sink:    func(kvevents.Publisher) kvevents.Sink { return &tape{} },
	})
	await(t, "an error", func() bool { s := sub.Status(); return len(s) == 1 && s[0].Err != nil && !s[0].Connected })
}
