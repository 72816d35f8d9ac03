package memory_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/memory"
)

// A block's ID depends on text and scope, and on nothing else.
func TestBlockID(t *testing.T) {
	text := rapid.StringN(0, 8, -1)
	scope := rapid.Custom(func(t *rapid.T) memory.Scope {
		return memory.Scope{User: text.Draw(t, "user"), Agent: text.Draw(t, "agent"), Run: text.Draw(t, "run")}
	})
	rapid.Check(t, func(t *rapid.T) {
		a := memory.Memory{Text: text.Draw(t, "a"), Scope: scope.Draw(t, "scope a")}
		b := memory.Memory{Text: text.Draw(t, "b"), Scope: scope.Draw(t, "scope b")}
		same := a.Text == b.Text && a.Scope == b.Scope
		if (a.BlockID() == b.BlockID()) != same {
			t.Fatalf("%+v and %+v: %s, %s", a, b, a.BlockID(), b.BlockID())
		}
		c := a
		c.ID, c.Metadata, c.CreatedAt, c.UpdatedAt = "x", map[string]any{"n": 1}, time.Now(), time.Now()
		if a.BlockID() != c.BlockID() {
			t.Fatal("the ID changes with something that is not in the block")
		}
	})
}
