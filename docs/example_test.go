package docs_test

import (
	"fmt"
	"io/fs"

	"github.com/ragpilot/ragpilot/docs"
)

func Example() {
	page, err := fs.ReadFile(docs.FS, "glossary.md")
	fmt.Println(string(page[:10]), err)
	// Output: # Glossary <nil>
}
