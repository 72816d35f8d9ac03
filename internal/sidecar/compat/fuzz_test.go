package compat_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ragpilot/ragpilot/internal/sidecar/compat"
)

// FuzzReorder sends any bytes as the body of /reorder: the answer is JSON, and if it is no refusal, the law holds.
func FuzzReorder(f *testing.F) {
	for _, s := range []string{
		`{"contexts":[[1,2,3],[3,2,9]],"alpha":0.5,"linkage_method":"single"}`, `{"contexts":[["a","b","a"],["\u0061"]],"deduplicate":true}`,
		`{"contexts":[[1.0,1,-0,0,123456789012345678901234567890]]}`, `{"contexts":[[],["\ud83d\ude00","\ud83d"]],"hint_template":"{doc_id}"}`,
		`{"contexts":[[1]],"contexts":[[2]],"parent_request_ids":[null,"x"]}`, `{"contexts":[[1,"a"]]}`, `{bad`, `[`, "\xef\xbb\xbf{}",
		`{"contexts":[[1e2]]}`, `1e900`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		api := compat.New(compat.Options{Limits: compat.Fixed(64, 64)})
		for range 2 { // initial, incremental
			code, got, raw := ask(t.Context(), t, api, "", "/reorder", string(body))
			if !json.Valid(raw) || !slices.Contains([]int{200, 400, 413, 422}, code) {
				t.Fatalf("%d %q", code, raw)
			}
			if code != http.StatusOK {
				return
			}
			var members map[string]json.RawMessage // a struct's names would be found in any case
			if err := json.Unmarshal(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")), &members); err != nil {
				t.Fatal(err)
			}
			var sent [][]json.RawMessage
			if err := json.Unmarshal(members["contexts"], &sent); err != nil {
				t.Fatal(err)
			}
			for i, at := range got.Indices {
				want, have := slices.Sorted(slices.Values(texts(sent)[at])), slices.Sorted(slices.Values(texts(got.Reordered)[i]))
				if !slices.Equal(want, have) {
					t.Fatalf("contexts[%d] = %q came back as %q", at, want, have)
				}
			}
		}
	})
}

// FuzzParse compares our reader with the standard library's.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,-0.5e+3,"\u00e9\ud83d\ude00\n"],"b":null,"a":true}`, `[01]`, `"\x"`, `-`, `1.`, ` {"a" : 1 , } `,
		"\"\t\"", `[1 2]`, `{"A":1,"a":2}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if !utf8.Valid(b) || bytes.HasPrefix(b, []byte("\xef\xbb\xbf")) {
			return // refused before, or cut
		}
		got, msg, at := compat.Parse(b)
		if msg == "Too many levels" {
			return
		}
		if valid := json.Valid(b); valid != (msg == "") {
			t.Fatalf("valid: %v, but %q at %d", valid, msg, at)
		}
		if msg != "" {
			if at < 0 || at > utf8.RuneCount(b) {
				t.Fatalf("%s at %d of %d", msg, at, len(b))
			}
			return
		}
		var want any
		if err := json.Unmarshal(b, &want); err != nil {
			return // a number that is too large
		}
		if !reflect.DeepEqual(want, got) && !strings.Contains(string(b), `\u`) { // lone surrogates are kept, not replaced
			t.Fatalf("got %#v, want %#v", got, want)
		}
	})
}
