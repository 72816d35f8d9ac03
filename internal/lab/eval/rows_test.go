package eval_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/lab/eval"
)

const goodRow = `{"id":"r1","session":"s","blocks":[{"id":"a","text":"The port is Oslo."},{"id":"b","text":"The port is ` +
	`Rome."}],"question":"Which port?","answers":["Oslo"],"lead":"The port is","gold":["a"]}`

func TestReadRows(t *testing.T) {
	rows, err := eval.ReadRows(strings.NewReader("\n" + goodRow + "\n\n" +
		`{"id":"r2","blocks":[{"id":"a","text":"x"}],"question":"q","answers":["a man","7"]}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 2 || rows[0].GoldRank() != 1 || rows[1].GoldRank() != 0 || rows[1].Answers[1] != "7" || rows[0].Lead != "The port is" {
		t.Errorf("%+v", rows)
	}
	var b bytes.Buffer
	if err := eval.WriteRows(&b, rows); err != nil {
		t.Fatal(err)
	}
	if again, err := eval.ReadRows(&b); err != nil || !reflect.DeepEqual(again, rows) {
		t.Errorf("written and read again: %v, %+v", err, again)
	}
}

// TestReadRowsErrors: errors name line, field and value.
func TestReadRowsErrors(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "\n\n", "no rows"},
		{"json", "\n{", "line 2: unexpected EOF"},
		{"utf-8", "{\"id\":\"\xff\"}", "line 1: not UTF-8"},
		{"two", `{"id":"a"} {"id":"b"}`, "line 1: more behind the object"},
		{"unknown", `{"id":"a","goldd":[]}`, `line 1: json: unknown field "goldd"`},
		{"type", `{"id":"a","answers":"Oslo"}`, "line 1: answers: want []string, not a string"},
		{"no id", `{"blocks":[{"id":"a","text":"x"}],"question":"q","answers":["a"]}`, `line 1: id ""`},
		{"no blocks", `{"id":"r","question":"q","answers":["x"]}`, "line 1: blocks []"},
		{"block id", `{"id":"r","blocks":[{"text":"x"}],"question":"q","answers":["x"]}`, `line 1: blocks[0].id ""`},
		{"block text", `{"id":"r","blocks":[{"id":"a"}],"question":"q","answers":["x"]}`, `line 1: blocks[0].text ""`},
		{
			"block twice", `{"id":"r","blocks":[{"id":"a","text":"x"},{"id":"a","text":"y"}],"question":"q","answers":["x"]}`,
			`line 1: blocks[1].id "a": is that of blocks[0]`,
		},
		{"no question", `{"id":"r","blocks":[{"id":"a","text":"x"}],"answers":["x"]}`, `line 1: question ""`},
		{"no answers", `{"id":"r","blocks":[{"id":"a","text":"x"}],"question":"q"}`, "line 1: answers []"},
		{"nothing to compare", `{"id":"r","blocks":[{"id":"a","text":"x"}],"question":"q","answers":["x","The!"]}`, `line 1: answers[1] "The!"`},
		{"gold", `{"id":"r","blocks":[{"id":"a","text":"x"}],"question":"q","answers":["x"],"gold":["b"]}`, `line 1: gold[0] "b": no such block`},
		{"row twice", goodRow + "\n" + goodRow, `line 2: id "r1": is that of line 1`},
		{"long", strings.Repeat("x", eval.MaxLine+1), "line 1: longer than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := eval.ReadRows(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// FuzzReadRows: what is read can be written and read again, and what is not names a line.
func FuzzReadRows(f *testing.F) {
	f.Add([]byte(goodRow))
	f.Add([]byte(goodRow + "\n{}"))
	f.Add([]byte(`{"id":"r","blocks":[{"id":"a","text":"x"}],"question":"q","answers":["the a"]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		rows, err := eval.ReadRows(bytes.NewReader(data))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "line ") && err.Error() != "no rows" {
				t.Fatalf("error without a line: %v", err)
			}
			return
		}
		var b bytes.Buffer
		if err := eval.WriteRows(&b, rows); err != nil {
			t.Fatal(err)
		}
		again, err := eval.ReadRows(&b)
		if err != nil || len(again) != len(rows) {
			t.Fatalf("%d rows, again %d: %v", len(rows), len(again), err)
		}
	})
}
