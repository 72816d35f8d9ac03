package cachewatch

import (
	"testing"

	"github.com/ragpilot/ragpilot/engines/kvevents"
)

// The metrics of a source are those of all that publish there, and what publishers have counted stays when they are forgotten.
func TestTotals(t *testing.T) {
	is := func(topic string, connected, complete bool, batches uint64) kvevents.Status {
		return kvevents.Status{
			Publisher: kvevents.Publisher{Source: "all", Topic: topic}, Connected: connected, Complete: complete,
			Counters: kvevents.Counters{Batches: batches, Clears: 1, BadFrames: 1, Malformed: 1},
		}
	}
	one, two := new(kvevents.Subscriber), new(kvevents.Subscriber)
	var sums tally
	for _, c := range []struct {
		what                string
		sub                 *kvevents.Subscriber
		list                []kvevents.Status
		connected, complete bool
		batches, clears     uint64
	}{
		{"none yet", one, nil, false, false, 0, 0},
		{"one", one, []kvevents.Status{is("a", true, true, 5)}, true, true, 5, 1},
		{"another, not complete", one, []kvevents.Status{is("a", true, true, 6), is("b", true, false, 3)}, true, false, 9, 2},
		{"the other way round", one, []kvevents.Status{is("a", true, false, 6), is("b", true, true, 3)}, true, false, 9, 2},
		{"both complete", one, []kvevents.Status{is("a", true, true, 6), is("b", true, true, 4)}, true, true, 10, 2},
		{"the first is gone", one, []kvevents.Status{is("a", false, false, 6), is("b", true, true, 4)}, true, true, 10, 2},
		{"it is forgotten", one, []kvevents.Status{is("b", true, true, 7)}, true, true, 13, 2},
		{"it comes back", one, []kvevents.Status{is("b", true, true, 7), is("a", true, true, 2)}, true, true, 15, 3},
		{"forgotten and back at once", one, []kvevents.Status{is("b", true, true, 1), is("a", true, true, 2)}, true, true, 16, 4},
		{"all are gone", one, []kvevents.Status{is("b", false, true, 1)}, false, false, 16, 4},
		{"none is left", one, nil, false, false, 16, 4},
		{"followed anew", two, []kvevents.Status{is("b", true, true, 4)}, true, true, 20, 5},
		{"another source", two, []kvevents.Status{
			{Publisher: kvevents.Publisher{Source: "other"}, Connected: true, Counters: kvevents.Counters{Batches: 99}},
		}, false, false, 20, 5},
	} {
		sums.add(c.sub, c.list)
		got := sums.total("all", c.list)
		if got.connected != c.connected || got.complete != c.complete ||
			got.counters != (counters{c.batches, 0, 0, 0, 0, c.clears, 2 * c.clears}) {
			t.Errorf("%s: %+v", c.what, got)
		}
	}
}
