package bleve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
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
		var pages []string
		raw, err := read(root.FS(), name, opts.MaxFileBytes)
		if err == nil {
			pages, _, err = texts(name, raw)
		}
		switch text := strings.TrimSpace(strings.Join(pages, "\n\n")); {
		case err == nil && text == "":
			skipped = append(skipped, Skipped{Path: name, Err: ErrNoText})
		case err == nil:
			all = append(all, Text{name, text})
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
