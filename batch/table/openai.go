package table

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// openaiFile reads the input of OpenAI's batch API.
type openaiFile struct{ jsonlFile }

// openOpenAI checks the first line.
func openOpenAI(ctx context.Context, t *Table) error {
	t.reader = &openaiFile{jsonlFile{t}}
	return t.reader.each(ctx, func(*Row) bool { return false })
}

// looksLikeOpenAI reports whether the first line of a file has three of the four members of OpenAI's batch input.
func looksLikeOpenAI(ctx context.Context, t *Table) bool {
	n := 0
	_ = (&jsonlFile{t}).objects(ctx, func(o *object) (bool, error) { // what is wrong with it is found again
		for _, m := range o.members {
			if slices.Contains([]string{"custom_id", "method", "url", "body"}, m.name) {
				n++
			}
		}
		return false, nil
	})
	return n >= 3
}

func (r *openaiFile) each(ctx context.Context, f func(*Row) bool) error {
	var row Row
	return r.objects(ctx, func(o *object) (bool, error) {
		row = Row{Line: o.line, raw: o.raw}
		if err := o.request(&row); err != nil {
			return false, err
		}
		return f(&row), nil
	})
}

// request reads a request out of a line.
func (o *object) request(row *Row) error {
	var found [3]bool
	for _, m := range o.members {
		var err error
		text := m.value.Str
		switch m.name {
		case "custom_id":
			row.ID = text
			if m.value.Type != gjson.String || text == "" {
				err = fmt.Errorf("%w: want a string that is not empty", ErrInvalid)
			}
		case "method":
			found[0] = true
			if m.value.Type != gjson.String || text != "POST" {
				err = fmt.Errorf(`%w: want "POST"`, ErrInvalid)
			}
		case "url":
			found[1], row.URL = true, text
			if !slices.Contains(o.t.opts.URLs, text) {
				err = fmt.Errorf("%w: want %s", ErrInvalid, strings.Join(o.t.opts.URLs, " or "))
			}
		case "body":
			found[2] = true
			err = o.body(row, m.value)
		default:
			continue
		}
		if err == nil && m.name != "body" {
			_, _, err = o.t.cell(m.value)
		}
		if err != nil {
			return &Error{Source: o.t.source, Place: o.place(), Column: m.name, Value: shorten(m.value.Raw), Err: err}
		}
	}
	if row.ID == "" {
		return o.missing("custom_id")
	}
	for i, name := range []string{"method", "url", "body"} {
		if !found[i] {
			return o.missing(name)
		}
	}
	return nil
}

// missing returns an error about a member that is not there.
func (o *object) missing(name string) error {
	return &Error{Source: o.t.source, Place: o.place(), Column: name, Err: fmt.Errorf("%w: the member is missing", ErrInvalid)}
}

// body checks the request body.
func (o *object) body(row *Row, v gjson.Result) error {
	if !v.IsObject() {
		return fmt.Errorf("%w: want an object", ErrInvalid)
	}
	row.Body = []byte(v.Raw)
	var err error
	seen := map[string]bool{}
	v.ForEach(func(key, value gjson.Result) bool {
		switch {
		case seen[key.Str]:
			err = fmt.Errorf("%w: the body has the member %s twice", ErrInvalid, shorten(key.Str))
		case key.Str == "stream" && value.Type != gjson.False && value.Type != gjson.Null:
			err = fmt.Errorf("%w: stream is %s; answers of a batch are not streamed", ErrInvalid, shorten(value.Raw))
		}
		seen[key.Str] = true
		return err == nil
	})
	return err
}
