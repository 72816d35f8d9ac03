package kvevents_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/internal/testkit/kvfake"
)

// TestReplay: what an engine still has is given in order, from a number on, until the caller has enough.
func TestReplay(t *testing.T) {
	for _, old := range []bool{false, true} {
		engine := &kvfake.Engine{Topic: "kv@a@m", OldReplay: old}
		replay := socketFile(t, "replay")
		if err := engine.Start(socketFile(t, "events"), replay); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(engine.Stop)
		for _, payload := range []string{"a", "b", "c", "d"} {
			engine.Buffer([]byte(payload))
		}
		for _, c := range []struct {
			from, most uint64
			want       []string
			finished   bool
		}{
			{0, 10, []string{"a", "b", "c", "d"}, true},
			{2, 10, []string{"c", "d"}, true},
			{4, 10, nil, true},
			{0, 2, []string{"a", "b"}, false},
		} {
			var got []string
			next := c.from
			finished, err := kvevents.Replay(t.Context(), replay, c.from, 0, func(seq uint64, payload []byte) bool {
				if seq != next {
					t.Errorf("number %d, want %d", seq, next)
				}
				next++
				got = append(got, string(payload))
				return uint64(len(got)) < c.most
			})
			if err != nil || finished != c.finished || !slices.Equal(got, c.want) {
				t.Errorf("from %d: %q, finished %v: %v, want %q", c.from, got, finished, err, c.want)
			}
		}
	}
	none := func(uint64, []byte) bool { t.Error("a batch"); return false }
	if _, err := kvevents.Replay(t.Context(), "tcp://*:5558", 0, 0, none); !errors.Is(err, kvevents.ErrEndpoint) {
		t.Error(err)
	}
	if _, err := kvevents.Replay(t.Context(), freePort(t), 0, time.Second, none); err == nil || errors.Is(err, kvevents.ErrEndpoint) {
		t.Error(err)
	}
}
