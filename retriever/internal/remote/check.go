package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// TopLevel is the name of a layout's metadata that says that it stands beside the other fields.
const TopLevel = "."

// Number is an option that must not be below 0.
type Number struct {
	Name  string
	Value int
}

// CheckNumbers returns an error that names the first option below 0.
func CheckNumbers(numbers ...Number) error {
	for _, n := range numbers {
		if n.Value < 0 {
			return fmt.Errorf("%s = %d, want at least 0", "Options."+n.Name, n.Value)
		}
	}
	return nil
}

// Field is a field of Options.Layout, and what it names.
type Field struct{ Field, Name string }

// Layout gives the fields that every layout has their defaults where they are empty, and returns them.
func Layout(id, text, version, metadata *string, tenant string) []Field {
	*id, *text, *version, *metadata = cmp.Or(*id, "id"), cmp.Or(*text, "text"), cmp.Or(*version, "version"), cmp.Or(*metadata, "metadata")
	return []Field{{"ID", *id}, {"Text", *text}, {"Version", *version}, {"Metadata", *metadata}, {"Tenant", tenant}}
}

// CheckLayout returns an error if a name is not valid or is given to two fields. taken has what names mean already.
func CheckLayout(fields []Field, taken map[string]string, valid func(name string) bool) error {
	for _, f := range fields {
		if f.Name == "" || f.Field == "Metadata" && f.Name == TopLevel {
			continue
		}
		if !valid(f.Name) {
			return fmt.Errorf("Options.Layout.%s = %q, want letters, digits, _ and -", f.Field, f.Name)
		}
		if other, is := taken[f.Name]; is {
			return fmt.Errorf("Options.Layout.%s = %q is %s as well", f.Field, f.Name, other)
		}
		taken[f.Name] = "Layout." + f.Field
	}
	return nil
}

// SampleVector returns a vector of the embedder, to see what its vectors are like.
func SampleVector(ctx context.Context, e embed.Embedder) ([]float32, error) {
	v, err := e.EmbedQuery(ctx, "how long is a vector?")
	if err != nil {
		return nil, fmt.Errorf("embed a text to see the length of vectors: %w", err)
	}
	if len(v) == 0 {
		return nil, errors.New("Options.Embedder made a vector without numbers")
	}
	return v, nil
}

// Texts returns the documents' texts as they are stored.
func Texts(docs []store.Document) []string {
	texts := make([]string, len(docs))
	for i, d := range docs {
		texts[i] = store.ValidText(d.Text)
	}
	return texts
}
