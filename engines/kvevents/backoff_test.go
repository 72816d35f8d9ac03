package kvevents_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ragpilot/ragpilot/engines/kvevents"
)

// An engine that hangs up at once is dialled more and more rarely, but never more rarely than MaxBackoff says: in an hour of
// waits that double from 1 s to 16 s, each shortened by up to a half.
func TestBackoffGrowsToItsBound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var dialled atomic.Int64
	served := make(chan error, 1)
	go func() { // outside of the bubble: its time goes on while nothing but this waits
		for {
			c, err := l.Accept()
			if err != nil {
				served <- err
				return
			}
			dialled.Add(1)
			c.Close()
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		sub, err := kvevents.New(kvevents.Config{
			Sources: []kvevents.Source{{Name: "r0", Endpoint: "ipc://" + path}},
			Sink:    func(kvevents.Publisher) kvevents.Sink { return &tape{} },
			Probe:   -1, Backoff: time.Second, MaxBackoff: 16 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := sub.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	l.Close()
	if err := <-served; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if n := dialled.Load(); n < 3600/16 || n > 3600/8+10 {
		t.Errorf("dialled %d times in an hour, want %d to %d", n, 3600/16, 3600/8+10)
	}
}
