package bleve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/ragpilot/ragpilot/retriever/bleve/internal/chunk"
	"github.com/ragpilot/ragpilot/retriever/bleve/internal/htmltext"
	"github.com/ragpilot/ragpilot/retriever/bleve/internal/pdftext"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// list returns the matching files of fsys, in lexical order.
func list(ctx context.Context, fsys fs.FS, opts Options) (names []string, err error) {
	err = fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case entry.IsDir():
			if name != "." && strings.HasPrefix(entry.Name(), ".") {
				return fs.SkipDir // .git and the like
			}
		case entry.Type().IsRegular() && opts.wants(name): // links are not followed: they could lead out of the folder
			names = append(names, name)
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}

// skippable reports whether an error is about one file, which is skipped and named. Any other fails the load, as an
// index with holes would answer wrongly.
func skippable(err error) bool {
	return errors.Is(err, ErrTooLarge) || errors.Is(err, ErrBinary) || errors.Is(err, ErrBadPDF) || errors.Is(err, ErrNoText)
}

// read returns the file's bytes. It reads no more than limit bytes, whatever the size that the file system reports.
func read(fsys fs.FS, name string, limit int64) (raw []byte, err error) {
	file, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	raw, err = io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if int64(len(raw)) > limit {
		return nil, fmt.Errorf("%s: over %d bytes: %w", name, limit, ErrTooLarge)
	}
	return raw, nil
}

// texts returns a file's text, by its format: HTML as Markdown, and of a PDF one text a page. markdown: headings may be in it.
func texts(name string, raw []byte) (pages []string, markdown bool, err error) {
	var text string
	switch extension := strings.ToLower(path.Ext(name)); extension {
	case ".pdf":
		pages, err = pdftext.Pages(raw)
	default:
		markdown = slices.Contains([]string{".md", ".markdown", ".html", ".htm"}, extension)
		if text, err = chunk.Normalize(raw); err == nil && markdown && strings.HasPrefix(extension, ".htm") {
			text, err = htmltext.Markdown(text)
		}
		pages = []string{text}
	}
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", name, err)
	}
	return pages, markdown, nil
}

// split cuts one file into blocks, by its format. IDs count the file's blocks from 0.
func split(name string, raw []byte, opts Options) (out []entry, err error) {
	pages, markdown, err := texts(name, raw)
	if err != nil {
		return nil, err
	}
	cut := chunk.Plain
	if markdown {
		cut = chunk.Markdown
	}
	for i, text := range pages {
		var r record
		if strings.EqualFold(path.Ext(name), ".pdf") {
			r.Page = i + 1
		}
		for _, c := range cut(text, chunk.Limits{Target: opts.TargetBytes, Max: opts.MaxBytes}) {
			id := name + "#" + strconv.Itoa(len(out))
			out = append(out, entry{id: id, text: c.Text(text), analyzer: opts.analyzerOf(name), record: r})
		}
	}
	return out, nil
}

// source returns the path of the file that the block with this ID was cut from.
func source(id string) string {
	return id[:strings.LastIndexByte(id, '#')]
}

// hit is what others see of a block of a file that was found.
func (f found) hit() (store.Hit, error) {
	r, err := readRecord(f.record)
	if err != nil {
		return store.Hit{}, err
	}
	metadata := map[string]any{KeySource: source(f.id)}
	if r.Page > 0 {
		metadata[KeyPage] = r.Page
	}
	return store.Hit{ID: f.id, Text: f.text, Score: f.score, Version: store.Version(f.text), Metadata: metadata}, nil
}
