package table

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const goodLine = `{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{}}` + "\n"

func TestBadInput(t *testing.T) {
	long := strings.Repeat("x", 2000)
	for _, test := range []struct {
		name, file, content string
		cause               error
		want                []string
	}{
		{"a quote in a field", "t.csv", "a,b\n1,2\n3,x\"y\n", ErrInvalid, []string{"line 3", `column "b"`, `"x\"y"`}},
		{"text after a quote", "t.csv", "a,b\n\"1\"x,2\n", ErrInvalid, []string{"line 2", `column "a"`, "after the closing quote"}},
		{"no closing quote", "t.csv", "a,b\n1,\"2\n3,4\n", ErrInvalid, []string{"line 2", `column "b"`, "no closing quote"}},
		{"too few fields", "t.csv", "a,b\n1,2\n3\n", ErrInvalid, []string{"line 3", "1 fields, the header 2", `"3"`}},
		{"too many fields", "t.csv", "a,b\n1,2,3\n", ErrInvalid, []string{"line 2", "3 fields, the header 2"}},
		{"a column twice", "t.csv", "a,b,a\n", ErrInvalid, []string{"line 1", `columns 1 and 3 are both named "a"`}},
		{"an empty name", "t.csv", "a,,b\n", ErrInvalid, []string{"line 1", "the name of column 2 is empty"}},
		{"Latin-1", "t.csv", "a,b\n1,caf\xe9\n", ErrInvalid, []string{"line 2", `column "b"`, "not UTF-8"}},
		{"Latin-1 in quotes", "t.csv", "a,b\n\"1\",\"caf\xe9\"\n", ErrInvalid, []string{"line 2", `column "b"`, "not UTF-8"}},
		{"a character over two cells", "t.csv", "a,b\n\"\xc3\",\"\xa9\"\n", ErrInvalid, []string{"line 2", `column "a"`, "not UTF-8"}},
		{"NUL", "t.csv", "a,b\n1,2\x00\n", ErrInvalid, []string{"line 2", `column "b"`, "NUL"}},
		{"UTF-16", "t.csv", "\xff\xfea\x00", ErrInvalid, []string{"UTF-16"}},
		{"line ends of old Macs", "t.csv", "a,b\r1,2\r", ErrInvalid, []string{"line 1", "carriage returns"}},
		{"a large cell", "t.csv", "a,b\n1," + long + "\n", ErrTooLarge, []string{"line 2", `column "b"`, "2000 bytes", "MaxCell"}},
		{"a large quoted cell", "t.csv", "a,b\n1,\"" + long + "\"\n", ErrTooLarge, []string{"line 2", `column "b"`, "MaxCell"}},
		{"a long line", "t.csv", "a,b\n1," + strings.Repeat("x", 5000) + "\n", ErrTooLarge, []string{"line 2", `"1,xxx`, "MaxRow"}},
		{"many lines in a field", "t.csv", "a,b\n1,\"" + strings.Repeat("x\n", 3000), ErrTooLarge, []string{"line 2", `column "b"`, "no closing quote"}},
		{"empty", "t.csv", "", ErrInvalid, []string{"the file is empty"}},
		{"empty lines only", "t.csv", "\n\n", ErrInvalid, []string{"there is no header"}},
		{"broken gzip", "t.csv.gz", gzipped("a,b\n1,2\n")[:20], ErrInvalid, []string{"broken or cut off"}},
		{"an unknown ending", "t.xlsx", "x", ErrFormat, []string{`".xlsx"`}},
		{"no JSON", "t.jsonl", "{\"a\":1}\n{\"a\":}\n", ErrInvalid, []string{"line 2", `{\"a\":}`, "byte 6"}},
		{"no object", "t.jsonl", "[1]\n", ErrInvalid, []string{"line 1", "want a JSON object"}},
		{"two objects", "t.jsonl", "{} {}\n", ErrInvalid, []string{"line 1"}},
		{"a member twice", "t.jsonl", `{"a":1,"\u0061":2}`, ErrInvalid, []string{"line 1", `column "a"`, "twice"}},
		{"half a character", "t.jsonl", `{"a":"\ud83d"}`, ErrInvalid, []string{"line 1", `column "a"`, `\ud83d is half`}},
		{"an escaped NUL", "t.jsonl", `{"a":"\u0000"}`, ErrInvalid, []string{"line 1", `column "a"`, "NUL"}},
		{"JSON in Latin-1", "t.jsonl", "{\"a\":\"\xe9\"}", ErrInvalid, []string{"line 1", "not UTF-8"}},
		{"a member without a name", "t.jsonl", `{"":1}`, ErrInvalid, []string{"empty"}},
		{"an ID twice", "t.jsonl", goodLine + goodLine, ErrInvalid, []string{"line 2", `"a"`, "line 1 has the same"}},
		{"no ID", "t.jsonl", strings.Replace(goodLine, `"custom_id":"a",`, "", 1), ErrInvalid, []string{"line 1", `"custom_id"`, "missing"}},
		{"an ID that is a number", "t.jsonl", strings.Replace(goodLine, `"a"`, "1", 1), ErrInvalid, []string{"line 1", `"custom_id"`, "string"}},
		{"GET", "t.jsonl", strings.Replace(goodLine, "POST", "GET", 1), ErrInvalid, []string{"line 1", `"method"`, "POST"}},
		{"another URL", "t.jsonl", strings.Replace(goodLine, "chat/completions", "files", 1), ErrInvalid, []string{"line 1", `"url"`, "files"}},
		{"no body", "t.jsonl", strings.Replace(goodLine, `,"body":{}`, "", 1), ErrInvalid, []string{"line 1", `"body"`, "missing"}},
		{"a body that is a list", "t.jsonl", strings.Replace(goodLine, "{}", "[]", 1), ErrInvalid, []string{"line 1", `"body"`, "object"}},
		{"a stream", "t.jsonl", strings.Replace(goodLine, "{}", `{"stream":true}`, 1), ErrInvalid, []string{"line 1", "stream is"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := write(t, test.file, test.content)
			err := firstError(t, path, Options{MaxCell: 1000, MaxRow: 4096})
			if !errors.Is(err, test.cause) {
				t.Fatalf("got %v, want %v", err, test.cause)
			}
			for _, want := range append(test.want, path) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in %q", want, err)
				}
			}
		})
	}
}

func TestBadSource(t *testing.T) {
	if err := firstError(t, t.TempDir(), Options{Format: CSV}); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "directory") {
		t.Errorf("directory: %v", err)
	}
	if err := firstError(t, filepath.Join(t.TempDir(), "t.csv"), Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	if err := firstError(t, "t.csv", Options{MaxCell: -1}); err == nil {
		t.Error("a negative bound is accepted")
	}
	table := open(t, write(t, "t.csv", "a,b\n"), Options{})
	if _, err := table.Column("c"); !errors.Is(err, ErrColumn) || !strings.Contains(err.Error(), `"a", "b"`) {
		t.Errorf("column: %v", err)
	}
}

func TestChangedFile(t *testing.T) {
	path, when := write(t, "t.csv", "a\n1\n2\n"), time.Unix(1_700_000_000, 0)
	for name, change := range map[string]func(string) error{
		"longer":  func(p string) error { return os.WriteFile(p, []byte("a\n1\n2\n3\n"), 0o600) },
		"shorter": func(p string) error { return os.WriteFile(p, []byte("a\n1\n"), 0o600) },
		"touched": func(p string) error { return os.Chtimes(p, time.Time{}, time.Unix(1, 0)) },
		"replaced": func(p string) error {
			return errors.Join(os.WriteFile(p+"2", []byte("a\n1\n2\n"), 0o600), os.Rename(p+"2", p))
		},
		"removed": os.Remove,
	} {
		if err := os.WriteFile(path, []byte("a\n1\n2\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
		table, during := open(t, path, Options{}), error(nil)
		for row, err := range table.Rows(t.Context()) {
			if during = err; err == nil && row.Number == 0 {
				if err := change(path); err != nil {
					t.Fatal(err)
				}
				if name != "removed" && name != "touched" { // what else has changed is to be found
					if err := os.Chtimes(path, when, when); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if !errors.Is(during, ErrChanged) {
			t.Errorf("%s during a pass: %v", name, during)
		}
		if _, err := table.Check(t.Context()); !errors.Is(err, ErrChanged) {
			t.Errorf("%s before a pass: %v", name, err)
		}
	}
}

func TestCanceled(t *testing.T) {
	table := open(t, write(t, "t.csv", "a\n1\n2\n"), Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := table.Check(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("check: %v", err)
	}
	if _, err := Open(ctx, "-", Options{Format: CSV, Stdin: strings.NewReader("a\n")}); !errors.Is(err, context.Canceled) {
		t.Errorf("open: %v", err)
	}
}

// endless is a text without an end.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	e.read += len(p)
	if e.read > 100<<20 {
		return 0, io.ErrUnexpectedEOF
	}
	return len(p), nil
}

// TestHugeCell checks that a cell of 100 MB is refused after the bound, and not read.
func TestHugeCell(t *testing.T) {
	for _, head := range []string{"a,b\n1,", "a,b\n1,\""} {
		path := write(t, "t.csv", head+strings.Repeat("x", 100<<20))
		used := testing.Benchmark(func(b *testing.B) {
			for b.Loop() {
				if err := firstError(t, path, Options{}); !errors.Is(err, ErrTooLarge) {
					t.Fatal(err)
				}
			}
		}).AllocedBytesPerOp()
		if used > 100<<20 { // of all sizes while memory grows to MaxRow, 16 MiB
			t.Errorf("%d bytes of memory", used)
		}
	}
	if _, err := Open(t.Context(), "-", Options{Format: CSV, Stdin: &endless{}}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("standard input that fails: %v", err)
	}
}
