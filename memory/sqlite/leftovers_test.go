package sqlite

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What was removed is found wherever it stands in the file, whole or its beginning or its end; too much is not looked for.
func TestLeftovers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	const size = 3<<20 + 17
	text := "The Password is " + strings.Repeat("swordfish ", 20) + "and was given on a Tuesday."
	for what, want := range map[string]bool{
		text:                          true,
		text[:70]:                     true,
		text[len(text)-70:]:           true,
		text[70:100]:                  false,
		"the password is another one": false,
	} {
		for _, at := range []int{0, 1<<20 - 3, 1<<20 - pieceBytes, 2 << 20, size - len(what)} {
			raw := make([]byte, size)
			copy(raw[at:], what)
			if err := os.WriteFile(path, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			var l leftovers
			l.text(text)
			if got, err := l.stand(path); got != want || err != nil {
				t.Errorf("%q at %d: found %v, %v", what, at, got, err)
			}
		}
	}
	var none, many leftovers
	none.text("short")
	for i := range maxPieces + 1 {
		many.text(fmt.Sprint("a text that is long enough, number ", i))
	}
	if found, err := none.stand(path); found || err != nil {
		t.Error("a text that is too short was found", err)
	}
	if found, err := many.stand(path + " is not there"); !found || err != nil || !bytes.Equal(nil, bytes.Join(many.pieces, nil)) {
		t.Error("many texts were looked for", err)
	}
	none.join(many)
	if !none.many {
		t.Error("many and few are few")
	}
}
