package repeat_test

import (
	"fmt"
	"testing"

	"github.com/ragpilot/ragpilot/internal/prompt/repeat"
)

// Where blocks end, and which are the same, does not depend on the IDs of external content.
func TestIDsDoNotCount(t *testing.T) {
	text := func(id string) string {
		out := ""
		for i := range 12 {
			out += fmt.Sprintf("<<<EXTERNAL_UNTRUSTED_CONTENT id=%q>>>\n%s\n<<<END_EXTERNAL_UNTRUSTED_CONTENT id=%[1]q>>>\n", id, file("a", 5*i,
				5*i+4))
		}
		return out
	}
	inJSON := func(id string) string { return quoted(t, map[string]string{"content": text(id)}) }
	for name, form := range map[string]func(string) string{"text": text, "JSON": inJSON} {
		same := repeat.Replace([]repeat.Text{tool(1, form("a1")), tool(2, form("a1"))}, 0)
		for id := range 40 { // each would end other blocks
			other := repeat.Replace([]repeat.Text{tool(1, form("a1")), tool(2, form(fmt.Sprintf("%x", 77777*id)))}, 0)
			if same.Texts[1] != other.Texts[1] || other.BlocksDeduped == 0 {
				t.Fatalf("%s: with other IDs it became\n%s, with the same\n%s", name, other.Texts[1], same.Texts[1])
			}
			if other.Texts[0] != form("a1") {
				t.Errorf("%s: the first became %q", name, other.Texts[0])
			}
		}
	}
}
