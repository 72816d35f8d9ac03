package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"
)

// What a derived script looks like, and so what a folder must have.
const (
	derivedUsers = 4
	derivedTurns = 4
)

// ErrNoDocuments: a folder has no text to make a script of.
var ErrNoDocuments = errors.New("no documents")

// maxDerivedFile is how much of a file is looked at for headings.
const maxDerivedFile = 1 << 20

// Derive makes a script from the headings, or the first lines of paragraphs, of a folder's documents: each user
// follows one document over four turns. In a small folder users share documents and ask about the same sections in
// other words. It depends on the files alone. A folder without text is an error that wraps [ErrNoDocuments]. Text files
// are those that retriever/bleve reads by default.
func Derive(ctx context.Context, fsys fs.FS) (Script, error) {
	var docs []document
	files := 0
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case entry.IsDir() && name != "." && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case !entry.Type().IsRegular() || !slices.Contains([]string{".md", ".markdown", ".txt"}, strings.ToLower(path.Ext(name))):
			return nil
		}
		files++
		d, err := readDocument(fsys, name)
		if err == nil && len(d.sections) > 0 {
			docs = append(docs, d)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(docs) == 0 {
		return nil, fmt.Errorf("%w: %d files (*.md, *.markdown, *.txt), none with a heading or a paragraph to ask about; or give questions "+
			"with a script",
			ErrNoDocuments, files)
	}
	slices.SortStableFunc(docs, func(a, b document) int { // documents with enough sections first
		return min(len(b.sections), derivedTurns) - min(len(a.sections), derivedTurns)
	})
	if full := slices.IndexFunc(docs, func(d document) bool { return len(d.sections) < derivedTurns }); full >= derivedUsers {
		docs = docs[:full]
	}
	return derived(docs), nil
}

// document is a file with what its sections are about.
type document struct {
	title    string
	sections []string
}

// derived spreads the users over the documents, and each user's turns over the document's sections.
func derived(docs []document) Script {
	s := make(Script, 0, derivedUsers*derivedTurns)
	for turn := range derivedTurns {
		for user := range derivedUsers {
			d := docs[user*len(docs)/derivedUsers]
			section := d.sections[turn*len(d.sections)/derivedTurns]
			question := fmt.Sprintf(derivedQuestions()[turn], d.title, section)
			for _, opening := range []string{"Please: ", "I was wondering: ", "One more thing: "} { // others share the document
				if !slices.ContainsFunc(s, func(t Turn) bool { return t.Question == question }) {
					break
				}
				question = opening + fmt.Sprintf(derivedQuestions()[turn], d.title, section)
			}
			s = append(s, Turn{User: fmt.Sprintf("user%d", user+1), Turn: turn + 1, Question: question})
		}
	}
	return s
}

func derivedQuestions() []string {
	return []string{
		"What does %[1]s say about %[2]s?",
		"And what is said in %[1]s about %[2]s?",
		"How does %[2]s go together with the rest of %[1]s?",
		"Finally, about %[1]s: what should I know of %[2]s?",
	}
}

// readDocument finds title and sections of a file: headings of Markdown, otherwise first lines of paragraphs.
func readDocument(fsys fs.FS, name string) (document, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return document{}, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxDerivedFile))
	if err = errors.Join(err, f.Close()); err != nil {
		return document{}, fmt.Errorf("read %s: %w", name, err)
	}
	stem := strings.TrimSuffix(path.Base(name), path.Ext(name))
	d := document{title: subject(strings.NewReplacer("-", " ", "_", " ").Replace(stem))}
	var headings, paragraphs []string
	blank, code := true, false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
			code = !code
		}
		if !code && strings.HasPrefix(line, "#") {
			if level := len(line) - len(strings.TrimLeft(line, "#")); level > 1 {
				headings = append(headings, line[level:])
			} else {
				d.title = subject(line[1:])
			}
		} else if blank && !code {
			paragraphs = append(paragraphs, line)
		}
		blank = line == ""
	}
	if d.sections = subjects(headings); len(d.sections) < derivedTurns {
		d.sections = subjects(append(headings, paragraphs...))
	}
	return d, nil
}

// subjects returns what is left of the lines as subjects, each once.
func subjects(lines []string) []string {
	var out []string
	for _, l := range lines {
		if s := subject(l); s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// subject makes a line fit to be asked about: its first twelve words, without punctuation at the ends.
func subject(line string) string {
	line = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || strings.ContainsRune("`*|<>[]", r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, line)
	words := strings.Fields(line)
	s := strings.Join(words[:min(len(words), 12)], " ")
	s = strings.TrimFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	if !strings.ContainsFunc(s, unicode.IsLetter) {
		return ""
	}
	return s
}
