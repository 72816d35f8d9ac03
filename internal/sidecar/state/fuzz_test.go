package state

import (
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/prompt/orders"
)

// FuzzRecord: whatever stands in the journal, it is taken or skipped.
func FuzzRecord(f *testing.F) {
	for _, s := range []string{
		`{"o":{"k":"00000000000000000000000000000000","o":[1,0]}}`, `{"o":{"k":"zz","o":[0]}}`, `{"o":{"k":"00","o":[5,5]}}`,
		`{"p":{"id":"x","s":{},"b":[{"i":"a","n":-5},{"i":"a","n":9}]}}`, `{"g":{"id":""}}`, `{"c":{}}`, `{"c":{"m":["a"]}}`,
		`{"p":{"id":"x","s":{},"b":[{"i":"a"},{"i":"b"}],"o":[1,0]}}`, `{"p":{"id":"x","s":{},"b":[{"i":"a"}],"o":[3]}}`,
		`{"p":{"id":"x","s":{},"b":[{"i":"a"}],"x":true}}`, `{}`, `null`, `[`, ``,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		pilot, err := contextpilot.New(contextpilot.Config{})
		if err != nil {
			t.Fatal(err)
		}
		var got Restored
		if got.read(text, orders.NewMemory(0, 0), pilot); got.Orders+got.Plans+got.Skipped > 1 {
			t.Errorf("%q: %+v", text, got)
		}
	})
}
