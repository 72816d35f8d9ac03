package bleve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/retriever/bleve/internal/chunk"
)

// load reads the matching files of fsys, in lexical order, and cuts them into blocks. A file that is no text
// is skipped and named; one that cannot be read fails the load, as an index with holes would answer wrongly.
func load(ctx context.Context, fsys fs.FS, opts Options) (blocks []contextpilot.Block, skipped []Skipped, err error) {
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
			return nil
		case !entry.Type().IsRegular() || !opts.wants(name):
			return nil // links are not followed: they could lead out of the folder
		}
		text, err := readText(fsys, name, opts.MaxFileBytes)
		if errors.Is(err, ErrBinary) || errors.Is(err, ErrTooLarge) {
			skipped = append(skipped, Skipped{Path: name, Err: err})
			return nil
		}
		if err != nil {
			return err
		}
		blocks = append(blocks, split(name, text, opts)...)
		return nil
	})
	return blocks, skipped, err
}

// readText returns the file's normalized text. It reads no more than limit bytes, whatever the size that the
// file system reports.
func readText(fsys fs.FS, name string, limit int64) (text string, err error) {
	file, err := fsys.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	raw, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	if int64(len(raw)) > limit {
		return "", fmt.Errorf("%s: over %d bytes: %w", name, limit, ErrTooLarge)
	}
	if text, err = chunk.Normalize(raw); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}

// split cuts one file. IDs count the file's blocks from 0.
func split(name, text string, opts Options) []contextpilot.Block {
	lim := chunk.Limits{Target: opts.TargetBytes, Max: opts.MaxBytes}
	var chunks []chunk.Chunk
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".markdown":
		chunks = chunk.Markdown(text, lim)
	default:
		chunks = chunk.Plain(text, lim)
	}
	blocks := make([]contextpilot.Block, len(chunks))
	for i, c := range chunks {
		blocks[i] = contextpilot.Block{ID: name + "#" + strconv.Itoa(i), Text: c.Text(text)}
	}
	return blocks
}

// source returns the path of the file that the block with this ID was cut from.
func source(id string) string {
	return id[:strings.LastIndexByte(id, '#')]
}
