package cachewatch

import (
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/kvevents/residency"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
)

// The first publisher of a source that engines connect to has the source's cache, which knows the prompts from before; it passes it on
// when it is forgotten. The caches of others go, with what they held.
func TestForgottenPublishers(t *testing.T) {
	var lost []string
	cleared := 0
	f := newFollower(t, Options{
		Lost:    func(_ contextpilot.Scope, id string) { lost = append(lost, id) },
		Cleared: func([]string) { cleared++ },
	})
	fl := newFleet(f, []Engine{{Name: "all", Kind: "vllm", Sources: sourceAt("all", "ipc:///not/used"), BlockSize: 4}})
	e := fl.engines[0]
	list, err := e.sources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e.at, e.free, e.names = byName(list), map[string]string{"all": "all"}, map[kvevents.Publisher]string{} // as subscribe does
	own := fl.group.Index("all")

	publisher := func(topic string) kvevents.Publisher {
		return kvevents.Publisher{Source: "all", Topic: topic, Rank: kvevents.AnyRank}
	}
	meet := func(topic string) *residency.Index { return fl.group.Index(e.cache(publisher(topic))) }
	forget := func(topic string, x *residency.Index) { // what a Subscriber does, in its order
		x.Complete(false)
		x.Clear(kvevents.Disconnected)
		e.forgotten(publisher(topic))
	}
	prompt := func(id string, first uint32) {
		fl.register(placed{id: id, size: 4, parts: []proxy.Part{{ID: id, Length: 4, Tokens: 4}}}, []uint32{first, 1, 2, 3}, residency.Key{})
		fl.group.Served(key("", id))
	}
	event := func(x *residency.Index, kind kvevents.Kind, hash uint64, first int) {
		x.Apply(&kvevents.Batch{
			Events: []kvevents.Event{
				{Kind: kind, Hashes: []kvevents.Hash{kvevents.Uint(hash)}, Tokens: []int{first, 1, 2, 3}, BlockSize: 4},
			},
		})
	}
	check := func(what string, caches, clearings int, gone string) {
		t.Helper()
		if n := len(fl.group.Stats()); n != caches || cleared != clearings || strings.Join(lost, " ") != gone {
			t.Errorf("%s: %d caches, %d clearings, lost %v; want %d, %d, %q", what, n, cleared, lost, caches, clearings, gone)
		}
	}

	prompt("early", 9) // before anybody has connected
	a := meet("kv@a")
	if a != own {
		t.Error("the first publisher does not know the prompts from before")
	}
	event(a, kvevents.Stored, 1, 9)
	b := meet("kv@b")
	if b == own {
		t.Error("two publishers have one cache")
	}
	prompt("both", 8)
	event(a, kvevents.Stored, 2, 8)
	event(b, kvevents.Stored, 3, 8)
	check("two publishers", 2, 0, "")

	forget("kv@a", a)
	check("the first is forgotten", 2, 0, "early") // the other holds "both"
	c := meet("kv@c")
	if c != own {
		t.Error("the source's cache was not passed on")
	}
	event(c, kvevents.Stored, 4, 7)

	forget("kv@b", b)
	check("the other one is forgotten", 1, 0, "early both")

	again := meet("kv@b") // with a replay of what it holds
	if again == b || again == own {
		t.Error("a publisher that comes back has its old cache, or another's")
	}
	event(again, kvevents.Stored, 3, 8)
	prompt("third", 8)
	event(again, kvevents.Removed, 3, 8) // once: counted twice it would stay
	check("it begins anew", 2, 0, "early both third")

	forget("kv@c", c)
	check("none holds anything", 2, 1, "early both third")
	e.forgotten(publisher("kv@unknown")) // no harm
	check("a stranger", 2, 1, "early both third")
}
