package bleve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/ragpilot/ragpilot/retriever/bleve/internal/chunk"
	"github.com/ragpilot/ragpilot/retriever/bleve/internal/htmltext"
	"github.com/ragpilot/ragpilot/retriever/bleve/internal/pdftext"
)

// Text is a file as text: HTML as Markdown, and the pages of a PDF with empty lines between them.
type Text struct{ Name, Text string }

// Texts reads the files of opts.Dir that [Open] would index, whole, in lexical order of their names. Files that cannot be read as text
// are skipped and named. It is an error if there is no text.
func Texts(ctx context.Context, opts Options) (all []Text, skipped []Skipped, err error) {
	if opts, err = opts.withDefaults(); err != nil {
		return nil, nil, err
	}
	root, err := os.OpenRoot(opts.Dir)
	if err != nil {
		return nil, nil, fmt.Errorf("Options.Dir = %q: %w", opts.Dir, err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	names, err := list(ctx, root.FS(), opts)
	if err != nil {
		return nil, nil, fmt.Errorf("Options.Dir = %q: %w", opts.Dir, err)
	}
	for _, name := range names {
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		text, err := whole(root.FS(), name, opts.MaxFileBytes)
		switch {
		case err == nil && strings.TrimSpace(text) == "":
			skipped = append(skipped, Skipped{Path: name, Err: ErrNoText})
		case err == nil:
			all = append(all, Text{name, strings.TrimSpace(text)})
		case skippable(err):
			skipped = append(skipped, Skipped{Path: name, Err: err})
		default:
			return nil, nil, err
		}
	}
	if len(all) == 0 {
		return nil, skipped, fmt.Errorf("%q: %w", opts.Dir, ErrNoText)
	}
	return all, skipped, nil
}

// whole returns a file's text.
func whole(fsys fs.FS, name string, limit int64) (text string, err error) {
	raw, err := read(fsys, name, limit)
	if err != nil {
		return "", err
	}
	extension := strings.ToLower(path.Ext(name))
	if extension == ".pdf" {
		var pages []string
		pages, err = pdftext.Pages(raw)
		text = strings.Join(pages, "\n\n")
	} else if text, err = chunk.Normalize(raw); err == nil && (extension == ".html" || extension == ".htm") {
		text, err = htmltext.Markdown(text)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}
