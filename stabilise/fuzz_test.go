package stabilise_test

import (
	"encoding/json"
	"testing"

	"github.com/ragpilot/ragpilot/stabilise"
)

// What is JSON stays JSON, whatever stands in it.
func FuzzBody(f *testing.F) {
	for _, b := range []string{
		`{"system":[{"type":"text","text":"A"},{"type":"text","text":"Current time: 04:14","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[]}],"tools":[{"name":"b","cache_control":1},{"name":"a","input_schema":{"b":1,"a":2}}]}`,
		`{"system":[{},"x",{"type":"text","text":"Today is Friday","cache_control":{}}],"messages":[{"role":"user","content":"hi"},"x",[]]}`,
		`{"instructions":"A\nIt is 04:14 now","input":"x [from the system text"}`,
		`{"messages":[{"role":"developer","content":"Memories:\n- x"},{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","tool_calls":[]},{"role":"tool","content":"1"}],"tools":[{"function":{"name":"x"},"type":"function"},{"type":"function","function":{"name":"a"}}]}`,
		`{"input":[{"role":"system","content":[{"type":"input_text","text":"Today is Friday"}]},{"type":"function_call_output","output":"x"}],"instructions":"## Memory\nx"}`,
	} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b string) {
		for _, p := range []stabilise.Place{stabilise.PlaceSystem, stabilise.PlaceUser} {
			s, err := stabilise.New(all(p))
			if err != nil {
				t.Fatal(err)
			}
			for api := stabilise.Chat; api <= stabilise.Responses; api++ {
				for range 2 {
					out := s.Body(api, stabilise.Conversation{Name: "a"}, []byte(b))
					if json.Valid([]byte(b)) && !json.Valid(out.Body) {
						t.Fatalf("%q gives %q", b, out.Body)
					}
				}
			}
		}
	})
}
