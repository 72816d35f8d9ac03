package lint

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tidwall/gjson"

	"github.com/ragpilot/ragpilot/internal/base/jsonorder"
	"github.com/ragpilot/ragpilot/internal/base/validjson"
)

// Fix puts the members of tools' schemas into one order, in a file of request bodies. To the API these are the same requests: no other
// byte changes. Tools with two members of one name, and lines that are no JSON, stay as they are. It returns how many requests were
// changed; the file is replaced as a whole, or not at all.
func Fix(name string) (changed int, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() || isTemplate(name) {
		return 0, fmt.Errorf("%s: want a file of requests", name)
	}
	if name, err = filepath.EvalSymlinks(name); err != nil { // a link stays one
		return 0, err
	}
	fix := fixLines
	if whole, err := isValue(name); err != nil {
		return 0, err
	} else if whole {
		fix = fixValue
	}
	in, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	out, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return 0, err
	}
	defer os.Remove(out.Name())
	w := bufio.NewWriterSize(out, 1<<20)
	changed, err = fix(w, in)
	if err = errors.Join(err, w.Flush(), out.Chmod(info.Mode().Perm()), out.Sync(), out.Close()); err != nil || changed == 0 {
		return 0, err
	}
	return changed, os.Rename(out.Name(), name)
}

// fixValue is for a file that is one value, and fixLines for one with a value in each line.
func fixValue(w io.Writer, in io.Reader) (changed int, err error) {
	body, err := io.ReadAll(in)
	if err != nil {
		return 0, err
	}
	if fixed := fixBody(body); fixed != nil {
		body, changed = fixed, 1
	}
	_, err = w.Write(body)
	return changed, err
}

func fixLines(w io.Writer, in io.Reader) (changed int, err error) {
	s := &scanner{in: bufio.NewReaderSize(in, 1<<20)}
	for {
		line, n, err := s.next()
		if n > 0 {
			fixed := fixBody(line)
			if fixed != nil {
				changed++
				line = fixed
			}
			if _, err := w.Write(line); err != nil {
				return changed, err
			}
		}
		if errors.Is(err, io.EOF) {
			return changed, nil
		}
		if err != nil {
			return changed, err
		}
	}
}

// schemas are where the schema of a tool stands in its definition.
var schemas = []string{
	"function.parameters", "parameters", "input_schema", "inputSchema", "parametersJsonSchema", "toolSpec.inputSchema.json",
}

// fixBody returns a body with the schemas in order; nil: nothing was to be changed.
func fixBody(line []byte) []byte {
	if !validjson.Valid(line) {
		return nil
	}
	root := gjson.ParseBytes(line)
	type edit struct {
		from, to int
		with     []byte
	}
	var edits []edit
	tool := func(_, t gjson.Result) bool {
		for _, path := range schemas {
			v := t.Get(path)
			if !v.IsObject() || v.Index == 0 {
				continue
			}
			at := v.Index // in the line
			if sorted, err := jsonorder.Schema([]byte(v.Raw)); err == nil && string(sorted) != v.Raw && string(line[at:at+len(v.Raw)]) == v.Raw {
				edits = append(edits, edit{at, at + len(v.Raw), sorted})
			}
		}
		return true
	}
	for _, body := range []string{"", "body.", "params.", "request."} {
		for _, list := range []string{"tools", "functions"} {
			tools := root.Get(body + list)
			tools.ForEach(func(k, t gjson.Result) bool {
				for _, inner := range []string{"functionDeclarations", "function_declarations"} {
					t.Get(inner).ForEach(tool)
				}
				return tool(k, t)
			})
		}
	}
	if len(edits) == 0 {
		return nil
	}
	out := make([]byte, 0, len(line))
	at := 0
	for _, e := range edits {
		if e.from < at {
			return nil
		}
		out = append(append(out, line[at:e.from]...), e.with...)
		at = e.to
	}
	return append(out, line[at:]...)
}
