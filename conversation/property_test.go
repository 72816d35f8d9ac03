package conversation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/conversation/conversationtest"
	"github.com/ragpilot/ragpilot/internal/prompt/extract"
	"github.com/ragpilot/ragpilot/internal/prompt/orders"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// Whatever is said, by whom and how often: nothing is lost, moved, trusted or changed that should not be. Tame conversations are read
// by the independent reader, too; hostile ones have markup, notes and halves of both in all places.
func TestAnyConversation(t *testing.T) {
	testkit.NotUnderRace(t)
	t.Run("tame", rapid.MakeCheck(func(t *rapid.T) { anyConversation(t, &drawer{t: t}, false) }))
	t.Run("hostile", rapid.MakeCheck(func(t *rapid.T) { anyConversation(t, &drawer{t: t, hostile: true}, false) }))
}

// Texts of one hash are not taken for the same text.
func TestEqualHashes(t *testing.T) {
	testkit.NotUnderRace(t)
	defer conversation.FewHashes(8)()
	t.Run("tame", rapid.MakeCheck(func(t *rapid.T) { anyConversation(t, &drawer{t: t}, true) }))
	t.Run("hostile", rapid.MakeCheck(func(t *rapid.T) { anyConversation(t, &drawer{t: t, hostile: true}, true) }))
}

// newForgetful is newEngine with little room.
func newForgetful(t rapid.TB, store orders.Store, memory int64) *conversation.Engine {
	pilot, err := contextpilot.New(contextpilot.Config{Top: contextpilot.TopNear, Dedup: contextpilot.DedupOff})
	if err != nil {
		t.Fatal(err)
	}
	e, err := conversation.New(pilot, conversation.Options{Orders: store, Memory: memory})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// newEngineBehind is newEngine behind another conversation.
func newEngineBehind(t *rapid.T, store orders.Store, c conversation.Conversation, m messages) *conversation.Engine {
	e := newEngine(t, store)
	forward(t, e, c, m)
	return e
}

// newTurning is newEngine with a pilot that turns documents round, each time by one more: only what is remembered keeps their order.
func newTurning(t rapid.TB, store orders.Store) *conversation.Engine {
	pilot, err := contextpilot.New(contextpilot.Config{Top: contextpilot.TopNear, Dedup: contextpilot.DedupOff})
	if err != nil {
		t.Fatal(err)
	}
	turned := 0
	e, err := conversation.New(pilot, conversation.Options{Orders: store, Plan: func(_ context.Context,
		r contextpilot.Request,
	) (contextpilot.Plan, error) {
		p := pilot.Plan(r)
		turned++
		n := len(p.Items)
		for i := range p.Items {
			p.Items[i].Index = (i + turned) % n
		}
		return p, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func anyConversation(t *rapid.T, d *drawer, fewHashes bool) {
	m := d.conversation()
	looked := looked
	if d.hostile && d.chance("other settings") {
		looked.Look.System, looked.Look.Tools = d.chance("system texts"), d.chance("tools")
	} else if d.hostile && d.chance("another form") {
		looked.Look.Form.Mode = extract.Mode(d.of("form", "separator", "markdown_header", "numbered", "xml_tag", "json_results"))
	}
	form := looked.Look.Form
	store := orders.NewMemory(0, 0)
	first := newTurning(t, store)
	if d.chance("another conversation before") {
		forward(t, first, looked, d.conversation())
	}
	arrived := inTurns(t, first, looked, m)
	same(t, "another replica", arrived, forward(t, newEngine(t, store), looked, m), conversation.Other)
	forgetful := newForgetful(t, store, int64(1+d.int(3000, "memory")))
	for n := 1; n <= len(m); n++ {
		same(t, "an engine that forgets", arrived[:n], forward(t, forgetful, looked, m[:n]), conversation.Other)
	}
	edited := slices.Concat(m[:d.int(len(m), "edited at")], d.conversation())
	same(t, "another history", forward(t, newEngine(t, store), looked, edited), forward(t, newEngineBehind(t, store, looked, m), looked,
		edited), conversation.Other)
	fresh := forward(t, newEngine(t, nil), looked, m)
	same(t, "no orders", arrived, fresh, conversation.System)
	check(t, form, m, arrived, fewHashes)
	check(t, form, m, fresh, fewHashes)

	other := looked
	other.Tenant = "another"
	shared := newEngine(t, store)
	forward(t, shared, looked, m)
	same(t, "another tenant behind the first", forward(t, newEngine(t, nil), other, m), forward(t, shared, other, m), conversation.Other)

	again := forward(t, newEngine(t, nil), looked, arrived)
	check(t, form, arrived, again, fewHashes)

	if !d.hostile && !fewHashes {
		r, err := conversationtest.Read(readable(m), readable(arrived))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(
			conversationtest.Permutation(r), conversationtest.NothingLost(r), conversationtest.Targets(r), conversationtest.Named(r),
			conversationtest.Trust(r), conversationtest.OneText(r), conversationtest.NotForged(r),
		); err != nil {
			t.Fatalf("the reader: %v\n%s", err, dump(m, arrived))
		}
	}
}

// inTurns forwards a conversation message by message. What has arrived stays as it is. It returns what arrives at last.
func inTurns(t *rapid.T, e *conversation.Engine, c conversation.Conversation, m messages) (arrived messages) {
	t.Helper()
	for n := 1; n <= len(m); n++ {
		now := forward(t, e, c, m[:n])
		same(t, "a later request", arrived, now[:n-1], conversation.Other)
		arrived = now
	}
	return arrived
}

// Recorded rules: what is left out stands further up, and earlier turns never change.
func TestAnyRecordedConversation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := &drawer{t: t, hostile: rapid.Bool().Draw(t, "hostile")}
		m := d.conversation()
		c := looked
		c.Recorded = true
		c.Place = func(_ context.Context, keys []conversation.Sum) []int {
			out := make([]int, len(keys))
			for i := range out {
				out[i] = len(keys) - 1 - i
			}
			return out
		}
		store := orders.NewMemory(0, 0)
		arrived := inTurns(t, newEngine(t, store), c, m)
		same(t, "another replica", arrived, forward(t, newEngine(t, store), c, m), conversation.Other)
		checkRecorded(t, m, arrived)
	})
}

// same fails unless two lists of messages say the same, but for the texts of one role.
func same(t *rapid.T, when string, want, got messages, but conversation.Role) {
	t.Helper()
	for i := range min(len(want), len(got)) {
		for j := range want[i].Texts {
			w, g := want[i].Texts[j], got[i].Texts[j]
			if w.Value != g.Value && (but == conversation.Other || w.Role != but) {
				t.Fatalf("%s: message %d, text %d became\n%s\nwas\n%s", when, i, j, g.Value, w.Value)
			}
		}
	}
}

func readable(m messages) []conversationtest.Message {
	out := make([]conversationtest.Message, len(m))
	for i := range m {
		out[i].Role = conversationtest.Role(m[i].Role)
		for _, x := range m[i].Texts {
			out[i].Texts = append(out[i].Texts, conversationtest.Text{Value: x.Value, Role: conversationtest.Role(x.Role), Call: x.Call})
		}
		for _, c := range m[i].Calls {
			out[i].Calls = append(out[i].Calls, conversationtest.Call(c))
		}
	}
	return out
}

func dump(sent, arrived messages) string {
	var b strings.Builder
	for i := range sent {
		fmt.Fprintf(&b, "-- message %d, calls %v\n", i, sent[i].Calls)
		for j, x := range sent[i].Texts {
			fmt.Fprintf(&b, "text %d role %d call %q: %q\n", j, x.Role, x.Call, x.Value)
			if a := arrived[i].Texts[j].Value; a != x.Value {
				fmt.Fprintf(&b, "    arrived: %q\n", a)
			}
		}
	}
	return b.String()
}
