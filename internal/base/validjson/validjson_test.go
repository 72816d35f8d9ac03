package validjson_test

import (
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/base/validjson"
)

func TestValid(t *testing.T) {
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for text, want := range map[string]bool{
		`{"a":[1,"x",null]}`: true, ` 1 `: true, ``: false, `{"a":1}{`: false, `{"a":01}`: false, `{'a':1}`: false,
		nested(9_000): true, nested(5_000_000): false, strings.Repeat("[", 5_000_000): false,
		`[` + strings.Repeat(`[],`, 20_000) + `1]`: true,
	} {
		if got := validjson.Valid([]byte(text)); got != want {
			t.Errorf("%.40s: %v, want %v", text, got, want)
		}
	}
}
