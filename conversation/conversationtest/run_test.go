package conversationtest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/conversation/conversationtest"
)

// wire changes nothing.
type wire struct{}

func (wire) Name() string                                                          { return "wire" }
func (wire) Send(m []conversationtest.Message) ([]conversationtest.Message, error) { return m, nil }
func (wire) As(conversationtest.Client) conversationtest.Frontend                  { return wire{} }
func (wire) With(conversationtest.Setting) conversationtest.Frontend               { return wire{} }
func (wire) Restart(bool)                                                          {}

func (wire) Skips(cell string) string {
	if strings.HasPrefix(cell, "cache marks") || strings.HasPrefix(cell, "#9 fails") {
		return "a wire has none"
	}
	return ""
}

func Example() {
	// In a file of tests: func TestScript(t *testing.T) { conversationtest.Run(t, newWire, today) }
	newWire := func(testing.TB) conversationtest.Frontend { return wire{} }
	today := conversationtest.Today{"#3 P": "full"} // and so on
	_ = func(t *testing.T) { conversationtest.Run(t, newWire, today) }

	for _, c := range conversationtest.Cells()[5:8] {
		fmt.Println(c.Name, c.Want)
	}
	// Output:
	// #3 P → #1
	// #3 M full
	// #3 V → #1
}

// What changes nothing does nothing of what the script wants, and breaks no invariant but that about the notes of others.
func TestWire(t *testing.T) {
	conversationtest.Run(t, func(testing.TB) conversationtest.Frontend { return wire{} }, conversationtest.Today{
		"#3 P": "full", "#3 V": "full", "#5 M": "full", "#8 rows of F": "as it came", "#9 F": "as it came", "#10 G": "full", "#10 " +
			"M": "full", "#10 S": "full",
		"#12 copied note": "0 fenced", "#13 J": "full", "#1 and #2 cut: #5 M": "full", "P edited in #1: #3 V": "full", "another P in #2: #3 " +
			"V": "full", "invariant 7: no forged notes": "does not hold",
	})
}
