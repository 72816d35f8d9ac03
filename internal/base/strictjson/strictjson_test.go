package strictjson_test

import (
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/base/strictjson"
)

func TestDecode(t *testing.T) {
	for text, want := range map[string]string{
		`{"n":1}`:          "",
		" {\"n\":1}\n":     "",
		``:                 "EOF",
		`{"n":1`:           "EOF",
		`{"m":1}`:          `unknown field "m"`,
		`{"n":"1"}`:        "n: want int, not a string",
		`{"in":{"n":"1"}}`: "in.n: want int, not a string",
		`{"n":1} {}`:       "more behind",
		`{"n":1}]`:         "more behind",
	} {
		var got struct {
			N  int `json:"n"`
			In struct {
				N int `json:"n"`
			} `json:"in"`
		}
		err := strictjson.Decode([]byte(text), &got)
		if want == "" && (err != nil || got.N != 1) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
