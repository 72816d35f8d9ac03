package repeat_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/internal/prompt/repeat"
)

// as returns a text of one of the kinds that are trusted differently, most trusted first.
func as(rank, message int, text string) repeat.Text {
	return []repeat.Text{
		{Kind: repeat.System, Label: repeat.SystemPrompt, Message: message, Text: text},
		{Kind: repeat.Message, Label: repeat.UserMessage, Message: message, Text: text},
		{Kind: repeat.Assistant, Label: repeat.AssistantMessage, Message: message, Text: text},
		{Kind: repeat.ToolResult, Label: "read", Message: message, Text: text},
	}[rank]
}

// A text is replaced by a reference to a text of equal or higher trust only, and a text of higher trust takes over as
// what later texts refer to, whether the turns before were planned now or earlier.
func TestTrust(t *testing.T) {
	a := file("a", 0, 90)
	for first := range 4 {
		for second := range 4 {
			for third := range 4 {
				in := []repeat.Text{as(first, 1, a), as(second, 2, a), as(third, 3, a)}
				best, rank := in[0].Label, first
				var want []int
				if second < first {
					best, rank = in[1].Label, second
				} else if second > 0 {
					want = append(want, 1)
				}
				replaced := third >= rank && third > 0
				if replaced {
					want = append(want, 2)
				}
				r := repeat.Replace(in, 0)
				if diff := cmp.Diff(want, changed(in, r)); diff != "" {
					t.Errorf("ranks %d, %d, %d (-want +got):\n%s", first, second, third, diff)
				}
				if replaced && !strings.Contains(r.Texts[2], "identical to earlier "+best+" result") {
					t.Errorf("ranks %d, %d, %d: refers to %.160q, want %s", first, second, third, r.Texts[2], best)
				}
				checkNothingLost(t, in, r, 0)
				known := make([]repeat.Known, 0, 2)
				var m repeat.Memory
				for _, x := range in[:2] {
					shorten(t, &m, x)
					known = append(known, m.Fresh())
				}
				for range 2 {
					slices.Reverse(known)
					var later repeat.Memory
					for _, k := range known {
						later.Know(k)
					}
					if got := shorten(t, &later, in[2]); got != r.Texts[2] {
						t.Errorf("ranks %d, %d, %d: planned later it is %.160q", first, second, third, got)
					}
				}
			}
		}
	}
}
