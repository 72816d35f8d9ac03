package jsonorder_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/base/jsonorder"
)

func TestSort(t *testing.T) {
	for raw, want := range map[string]string{
		`{}`:        `{}`,
		` [ 1 , 2]`: ` [ 1 , 2]`,
		`"b"`:       `"b"`,
		`1e400`:     `1e400`,
		`{"b":1.00,"a":{"d":"\u0041/","c":[{"z":1,"y":2},null]}}`: `{"a":{"c":[{"y":2,"z":1},null],"d":"\u0041/"},"b":1.00}`,
		"{\n  \"b\": 1,\n  \"a\" : 2\n}\n":                        "{\n  \"a\" : 2,\n  \"b\": 1\n}\n",
		`{"\u0062":1,"a":2,"A":3,"":4}`:                           `{"":4,"A":3,"a":2,"\u0062":1}`,
		`{"required":["b","a"],"enum":["b","a"]}`:                 `{"enum":["b","a"],"required":["b","a"]}`,
	} {
		got, err := jsonorder.Sort([]byte(raw))
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", raw, got, err, want)
		}
	}
}

func TestSchema(t *testing.T) {
	for raw, want := range map[string]string{
		`{"type":"object","required":["b","a"],"properties":{"b":{"enum":["z","y"]},"a":{"type":["string","null"]}}}`: `{"properties":{"a":{"type":["string","null"]},"b":{"enum":["z","y"]}},"required":["a","b"],"type":"object"}`,
		// A property may be called required, and so may the member of a value.
		`{"properties":{"required":{"default":{"required":["b","a"]}}}}`:                      `{"properties":{"required":{"default":{"required":["b","a"]}}}}`,
		`{"properties":{"required":["b","a"]}}`:                                               `{"properties":{"required":["b","a"]}}`,
		`{"properties":{"properties":{"required":["b","a"]}}}`:                                `{"properties":{"properties":{"required":["a","b"]}}}`,
		`{"examples":[{"required":["b","a"]}],"const":{"required":["d","c"]}}`:                `{"const":{"required":["d","c"]},"examples":[{"required":["b","a"]}]}`,
		`{"anyOf":[{"type":"x","required":["b","a"]},{"type":"a"}]}`:                          `{"anyOf":[{"required":["a","b"],"type":"x"},{"type":"a"}]}`,
		`{"prefixItems":[{"type":"b"},{"type":"a"}],"items":{"required":[ "b" ,  "a" ]}}`:     `{"items":{"required":[ "a" ,  "b" ]},"prefixItems":[{"type":"b"},{"type":"a"}]}`,
		`{"$defs":{"x":{"required":["b","a"]}},"allOf":[{"if":{"required":["b","\u0061"]}}]}`: `{"$defs":{"x":{"required":["a","b"]}},"allOf":[{"if":{"required":["\u0061","b"]}}]}`,
		`{"required":[2,1]}`:                  `{"required":[2,1]}`,
		`{"required":true}`:                   `{"required":true}`,
		`{"required":{"b":["d","c"],"a":{}}}`: `{"required":{"a":{},"b":["d","c"]}}`,
	} {
		got, err := jsonorder.Schema([]byte(raw))
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", raw, got, err, want)
		}
	}
}

func TestObject(t *testing.T) {
	const raw = ` {"z":{"b":1,"a":2}, "function":{"b":1,"a":2} ,"type":"x"}`
	got, err := jsonorder.Object([]byte(raw), []string{"type", "function"}, func(name string, value []byte) ([]byte, error) {
		if name != "z" {
			return value, nil
		}
		return jsonorder.Sort(value)
	})
	if want := ` {"type":"x", "function":{"b":1,"a":2} ,"z":{"a":2,"b":1}}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	if got, err = jsonorder.Object([]byte(`{"b":{"d":1,"c":2},"a":1}`), nil, nil); err != nil || string(got) != `{"a":1,"b":{"d":1,"c":2}}` {
		t.Errorf("without inner: %s, %v", got, err)
	}
	no := errors.New("no")
	if _, err = jsonorder.Object([]byte(raw), nil, func(string, []byte) ([]byte, error) { return nil, no }); !errors.Is(err, no) {
		t.Errorf("an error of inner: %v", err)
	}
	if _, err = jsonorder.Object([]byte(`[1]`), nil, nil); err == nil {
		t.Error("an array was taken for an object")
	}
}

func TestRefused(t *testing.T) {
	for _, raw := range []string{``, `{`, `{"a":1}{}`, `{"a":1,}`, `nul`, strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)} {
		if got, err := jsonorder.Sort([]byte(raw)); !errors.Is(err, jsonorder.ErrInvalid) || got != nil {
			t.Errorf("%.20q: got %q, %v", raw, got, err)
		}
	}
	for _, raw := range []string{`{"a":1,"a":2}`, `[{"x":{"a":1,"\u0061":2}}]`, `{"\ud800":1,"\ud801":2}`} {
		for name, f := range map[string]func([]byte) ([]byte, error){"Sort": jsonorder.Sort, "Schema": jsonorder.Schema} {
			if got, err := f([]byte(raw)); err == nil || got != nil {
				t.Errorf("%s: %s: got %s", name, raw, got)
			} else if _, ok := errors.AsType[*jsonorder.DuplicateError](err); !ok {
				t.Errorf("%s: %s: %v", name, raw, err)
			}
		}
	}
}

// FuzzSort: the bytes are a permutation, the value is the same, a second time changes nothing, and shuffled members give the same.
func FuzzSort(f *testing.F) {
	for _, s := range []string{
		`{"b":[1,{"d":1,"c":2}],"a":"x\\\""}`, `{"required":["b","a"],"properties":{"q":{"required":["z","\u0061"]}}}`, ` { "b" : 1e5 , "a" : -0 } `,
		`{"a":1,"a":2}`, `[]`, "{\"\xff\":1,\"\xfe\":2}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := bytes.Clone(raw)
		out, err := jsonorder.Sort(raw)
		schema, err2 := jsonorder.Schema(raw)
		if !bytes.Equal(raw, before) {
			t.Fatal("the argument was changed")
		}
		if (err == nil) != (err2 == nil) || (err == nil) && !json.Valid(raw) {
			t.Fatalf("%q: %v, %v", raw, err, err2)
		}
		if err != nil {
			return
		}
		for _, o := range [][]byte{out, schema} {
			a, b := bytes.Clone(raw), bytes.Clone(o)
			slices.Sort(a)
			slices.Sort(b)
			if !bytes.Equal(a, b) {
				t.Fatalf("%q became %q: other bytes", raw, o)
			}
		}
		var x, y any
		if json.Unmarshal(raw, &x) == nil && (json.Unmarshal(out, &y) != nil || !reflect.DeepEqual(x, y)) {
			t.Fatalf("%q became %q: another value", raw, out)
		}
		if again, err := jsonorder.Sort(out); err != nil || !bytes.Equal(again, out) {
			t.Fatalf("%q became %q, then %q, %v", raw, out, again, err)
		}
		if again, err := jsonorder.Schema(schema); err != nil || !bytes.Equal(again, schema) {
			t.Fatalf("%q became %q, then %q, %v", raw, schema, again, err)
		}
	})
}

func BenchmarkSchema(b *testing.B) {
	raw := []byte(`{"type":"object","required":["path","mode"],"properties":{"path":{"type":"string","description":"` +
		strings.Repeat("the path ", 50) + `"},"mode":{"type":"string","enum":["r","w"]}},"additionalProperties":false}`)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = jsonorder.Schema(raw)
	}
}
