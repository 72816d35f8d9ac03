package table

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
)

func gzipped(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return b.String()
}

func TestReadText(t *testing.T) {
	const batch = `{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"m", "n":1.0}}`
	for _, test := range []struct{ name, file, content, want string }{
		{"plain", "t.csv", "a,b\n1,2\n3,4\n", "a|b\nline 2: 1|2\nline 3: 3|4\n"},
		{"no last line end", "t.csv", "a,b\n1,2", "a|b\nline 2: 1|2\n"},
		{"CRLF", "t.csv", "a,b\r\n1,2\r\n3,4\r", "a|b\nline 2: 1|2\nline 3: 3|4\n"},
		{"byte order mark", "t.csv", "\xef\xbb\xbfa,b\n1,2\n", "a|b\nline 2: 1|2\n"},
		{"quotes", "t.csv", "a,\"b \"\"c\"\"\"\n\"1,2\",\"\"\n", "a|b \"c\"\nline 2: 1,2|\n"},
		{"lines in fields", "t.csv", "a,b\n\"1\r\n2\n\n\",3\n4,\"5\n\"\n6,7", "a|b\nline 2: 1\r\n2\n\n|3\nline 6: 4|5\n\nline 8: 6|7\n"},
		{"spaces stay", "t.csv", "a, b\n 1 ,\t2\n", "a| b\nline 2:  1 |\t2\n"},
		{"empty lines", "t.csv", "\na,b\n\n1,2\n\n\n3,4\n\n", "a|b\nline 4: 1|2\nline 7: 3|4\n"},
		{"empty lines in one column", "t.csv", "a\n1\n\n\"\"\n", "a\nline 2: 1\nline 3: \nline 4: \n"},
		{"header only", "t.csv", "a,b\n", "a|b\n"},
		{"tabs", "t.tsv", "a\tb\n1,2\t\"3\t4\"\n", "a|b\nline 2: 1,2|3\t4\n"},
		{"gzip", "t.csv.gz", gzipped("a,b\n1,2\n"), "a|b\nline 2: 1|2\n"},
		{"two gzip members", "t.csv.gz", gzipped("a,b\n1,") + gzipped("2\n"), "a|b\nline 2: 1|2\n"},
		{
			"JSON lines", "t.jsonl", `{"a":"x\n\u00e9\"","b":12345678901234567890.10}` + "\n\n" + `  {"b":null,"c":{"k": [1, 2]},"a":true}` + "\r\n",
			"a|b|c\nline 1: x\né\"|12345678901234567890.10|∅\nline 3: true|∅|{\"k\": [1, 2]}\n",
		},
		{"objects without members", "t.jsonl", "{}\n{}", "\nline 1: \nline 2: \n"},
		{"OpenAI", "t.jsonl", batch + "\n", "\nline 1: a /v1/chat/completions {\"model\":\"m\", \"n\":1.0}\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			table := open(t, write(t, test.file, test.content), Options{})
			for range 2 { // every pass is the same
				if got := dump(t, table); got != test.want {
					t.Errorf("got\n%s\nwant\n%s", got, test.want)
				}
			}
		})
	}
}

func TestNoQuotes(t *testing.T) {
	table := open(t, write(t, "t.tsv", "a\tb\n\"1\t2\" x\n"), Options{NoQuotes: true})
	if got, want := dump(t, table), "a|b\nline 2: \"1|2\" x\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStdin(t *testing.T) {
	table := open(t, "-", Options{Format: CSV, Stdin: strings.NewReader("a\n1\n")})
	for range 2 {
		if got, want := dump(t, table), "a\nline 2: 1\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if _, err := Open(t.Context(), "-", Options{}); !errors.Is(err, ErrFormat) {
		t.Errorf("without a format: %v", err)
	}
	if _, err := Open(t.Context(), "-", Options{Format: CSV, Stdin: strings.NewReader("")}); !errors.Is(err, ErrInvalid) {
		t.Errorf("empty: %v", err)
	}
}

// What is kept of standard input must not stay on the disk when a process is killed, and can be read several times at once.
func TestSnapshotHasNoName(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be removed")
	}
	dir := t.TempDir()
	for format, content := range map[Format]string{CSV: "a\n1\n2\n", Parquet: string(parquetBytes(t, 2))} {
		in, err := Open(t.Context(), "-", Options{Format: format, Stdin: strings.NewReader(content), TempDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: %v, %v", format, left, err)
		}
		for outer, err := range in.Rows(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, err := range in.Rows(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			if n != 2 {
				t.Errorf("%s: %d rows within row %d, want 2", format, n, outer.Number)
			}
		}
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}
}
