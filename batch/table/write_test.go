package table

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// annotate writes a table with one more column, whose cells are "yes", NULL, "yes", ...
func annotate(t testing.TB, in *Table, path string, opts WriteOptions) error {
	t.Helper()
	w, err := Create(path, in, []string{"answer"}, opts)
	if err != nil {
		return err
	}
	defer w.Close()
	for row, err := range in.Rows(t.Context()) {
		if err != nil {
			return err
		}
		cell := Text("yes, \"so\"")
		if row.Number%2 == 1 {
			cell = Cell{Null: true}
		}
		if err := w.Write(row, cell); err != nil {
			return err
		}
	}
	return w.Commit()
}

func TestWrite(t *testing.T) {
	for _, test := range []struct{ name, file, content, out, want string }{
		{
			"records stay", "t.csv", "a,b\r\n\"1\",\"2\r\n\"\"\"\r\n3,\r\n", "o.csv",
			"a,b,answer\n\"1\",\"2\r\n\"\"\",\"yes, \"\"so\"\"\"\n3,,\n",
		},
		{"one empty column", "t.csv", "a\n\nx\n", "o.csv", "a,answer\n,\"yes, \"\"so\"\"\"\nx,\n"},
		{"tabs", "t.tsv", "a\n1,2\n", "o.tsv", "a\tanswer\n1,2\t\"yes, \"\"so\"\"\"\n"},
		{"CSV as TSV", "t.csv", "a,b\n1,\"\t\"\n", "o.tsv", "a\tb\tanswer\n1\t\"\t\"\t\"yes, \"\"so\"\"\"\n"},
		{
			"CSV as JSON lines", "t.csv", "a\n<1>\n2\n", "o.jsonl",
			`{"a":"<1>","answer":"yes, \"so\""}` + "\n" + `{"a":"2","answer":null}` + "\n",
		},
		{
			"objects stay", "t.jsonl", ` {"b": 1.0, "a":"\u0041" } ` + "\n{}\n{ }", "o.jsonl",
			`{"b": 1.0, "a":"\u0041","answer":"yes, \"so\""}` + "\n" + `{"answer":null}` + "\n" + `{"answer":"yes, \"so\""}` + "\n",
		},
		{"JSON lines as CSV", "t.jsonl", `{"a":"x","b":null}` + "\n" + `{"b":[1]}`, "o.csv", "a,b,answer\nx,,\"yes, \"\"so\"\"\"\n,[1],\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			in, out := open(t, write(t, test.file, test.content), Options{}), filepath.Join(t.TempDir(), test.out)
			if err := annotate(t, in, out, WriteOptions{}); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
			lone(t, out)
		})
	}
}

// lone checks that a file is alone in its folder.
func lone(t testing.TB, path string) {
	t.Helper()
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Name() != filepath.Base(path) {
			t.Errorf("%s was left behind", f.Name())
		}
	}
}

func TestWritePacked(t *testing.T) {
	in, out := open(t, write(t, "t.csv", "a\n1\n"), Options{}), filepath.Join(t.TempDir(), "o.csv.gz")
	if err := annotate(t, in, out, WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, want := dump(t, open(t, out, Options{})), "a|answer\nline 2: 1|yes, \"so\"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCreateRefuses(t *testing.T) {
	path := write(t, "t.csv", "a,b\n1,2\n")
	in := open(t, path, Options{})
	link := filepath.Join(t.TempDir(), "link.csv")
	if err := os.Link(path, link); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	there := write(t, "there.csv", "x")
	nowhere := filepath.Join(t.TempDir(), "link.csv")
	if err := os.Symlink("nowhere.csv", nowhere); err != nil {
		t.Fatal(err)
	}
	batch := open(t, write(t, "t.jsonl", `{"custom_id":"a","method":"POST","url":"/v1/completions","body":{}}`), Options{})
	for _, test := range []struct {
		name string
		in   *Table
		path string
		more []string
		opts WriteOptions
		want string
	}{
		{"the input", in, path, []string{"c"}, WriteOptions{Overwrite: true}, "it is the input"},
		{"the input by another name", in, link, []string{"c"}, WriteOptions{Overwrite: true}, "it is the input"},
		{"an output that is there", in, there, []string{"c"}, WriteOptions{}, "it exists already"},
		{"a link to nowhere", in, nowhere, []string{"c"}, WriteOptions{}, "it exists already"},
		{"a directory", in, dir, []string{"c"}, WriteOptions{Format: CSV, Overwrite: true}, "it is a directory"},
		{"a column that is there", in, filepath.Join(dir, "o.csv"), []string{"c", "b"}, WriteOptions{}, `column "b"`},
		{"a column twice", in, filepath.Join(dir, "o.csv"), []string{"c", "c"}, WriteOptions{}, "added twice"},
		{"an empty name", in, filepath.Join(dir, "o.csv"), []string{""}, WriteOptions{}, "is empty"},
		{"an unknown ending", in, filepath.Join(dir, "o.xlsx"), []string{"c"}, WriteOptions{}, `".xlsx"`},
		{"Parquet from CSV", in, filepath.Join(dir, "o.parquet"), []string{"c"}, WriteOptions{}, "Parquet only"},
		{"a folder that is not there", in, filepath.Join(dir, "x", "o.csv"), []string{"c"}, WriteOptions{}, "no such file"},
		{"OpenAI batch input", batch, filepath.Join(dir, "o.csv"), []string{"c"}, WriteOptions{}, "CreateResults"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, err := Create(test.path, test.in, test.more, test.opts)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if err == nil {
				w.Close()
			}
		})
	}
	if files, _ := os.ReadDir(dir); len(files) > 0 {
		t.Errorf("left behind: %v", files)
	}
	if err := annotate(t, in, there, WriteOptions{Overwrite: true}); err != nil {
		t.Error(err)
	}
}

func TestWriterKeepsOrder(t *testing.T) {
	in := open(t, write(t, "t.csv", "a\n1\n2\n"), Options{})
	if _, err := in.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "o.csv")
	begin := func() *Writer {
		w, err := Create(path, in, []string{"b"}, WriteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.Close() })
		return w
	}
	w := begin()
	for row, err := range in.Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if row.Number == 0 {
			continue
		}
		err = w.Write(row, Text("x"))
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "row 2 was written where row 1 is next") {
			t.Errorf("second row first: %v", err)
		}
	}
	if err := w.Commit(); !errors.Is(err, ErrInvalid) {
		t.Errorf("commit after an error: %v", err)
	}
	w = begin()
	for row, err := range in.Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(row, Text("x")); err != nil {
			t.Fatal(err)
		}
		break
	}
	if err := w.Commit(); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "1 of 2 rows") {
		t.Errorf("a row is missing: %v", err)
	}
	if err := w.Commit(); err == nil {
		t.Error("a second commit succeeds")
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("an incomplete file is there")
	}
	lone(t, path)
}

// full is a disk with room for some bytes.
type full struct {
	w    io.Writer
	room int
}

var errFull = errors.New("no space left on device")

func (f *full) Write(p []byte) (int, error) {
	if len(p) > f.room {
		return 0, errFull
	}
	f.room -= len(p)
	return f.w.Write(p)
}

func TestFullDisk(t *testing.T) {
	defer func() { testFile = nil }()
	in := open(t, write(t, "t.csv", "a\n"+strings.Repeat("1234567890\n", 100_000)), Options{})
	for _, room := range []int{0, 300_000, 1_000_000} {
		testFile = func(w io.Writer) io.Writer { return &full{w, room} }
		path := filepath.Join(t.TempDir(), "o.csv")
		if err := annotate(t, in, path, WriteOptions{}); !errors.Is(err, errFull) || !strings.Contains(err.Error(), path) {
			t.Errorf("room for %d bytes: %v", room, err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Error("an incomplete file is there")
		}
		lone(t, path)
	}
}

func TestResultFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "o.jsonl")
	w, err := CreateResults(path, nil, WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []Result{
		{ID: "batch_req_1", CustomID: "a", Status: 200, RequestID: "req_1", Body: []byte(`{"x": "<1>"}`)},
		{ID: "batch_req_2", CustomID: "b", Code: "expired", Message: "too late"},
	} {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	got, _ := os.ReadFile(path)
	want := `{"id":"batch_req_1","custom_id":"a","response":{"status_code":200,"request_id":"req_1","body":{"x":"<1>"}},"error":null}` + "\n" +
		`{"id":"batch_req_2","custom_id":"b","response":null,"error":{"code":"expired","message":"too late"}}` + "\n"
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestFailureFiles(t *testing.T) {
	for name, want := range map[string]string{
		"e.csv":   "row,place,custom_id,code,message,status,attempts\n1,line 2,,refused,\"no, \"\"never\"\"\",400,3\n",
		"e.jsonl": `{"row":1,"place":"line 2","custom_id":"","code":"refused","message":"no, \"never\"","status":400,"attempts":3}` + "\n",
	} {
		path := filepath.Join(t.TempDir(), name)
		w, err := CreateFailures(path, nil, WriteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		err = w.Write(RowFailure{Place: "line 2", Code: "refused", Message: `no, "never"`, Status: 400, Attempts: 3})
		if err := errors.Join(err, w.Commit()); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(path); string(got) != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}
