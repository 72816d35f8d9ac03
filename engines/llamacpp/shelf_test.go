package llamacpp

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// filled returns a folder with one file, and the names of both its parts.
func filled(t *testing.T) (dir, file, note string) {
	t.Helper()
	dir = t.TempDir()
	s, err := openShelf(dir, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	f := &slotFile{Key: "k", Tokens: []token{5, 6, 7}, Length: 4, Bytes: 40, name: fileName("k", []token{5, 6, 7})}
	file, note = filepath.Join(dir, f.name+fileEnding), filepath.Join(dir, f.name+noteEnding)
	if err := os.WriteFile(file, bytes.Repeat([]byte{1}, 40), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.add(f); err != nil {
		t.Fatal(err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	return dir, file, note
}

// found opens a folder and returns the file that it offers and that is whole, nil if there is none.
func found(t *testing.T, dir string) *slotFile {
	t.Helper()
	s, err := openShelf(dir, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	f, n := s.find("k", []token{5, 6, 7, 8})
	if f != nil && (n != 3 || s.check(f) != nil) {
		f = nil
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	return f
}

// A file or a note that is cut short at any byte, or of which any bit is another one, is not offered, or says what it said before. Of the
// note only the number of tokens that are not known is left to the server's answer.
func TestShelfDamage(t *testing.T) {
	dir, file, note := filled(t)
	if found(t, dir) == nil {
		t.Fatal("the whole file is not found")
	}
	for _, name := range []string{file, note} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range data {
			for _, harm := range []byte{0, 1, 0x20, 0x80} {
				bad := slices.Clone(data)
				if bad[i] ^= harm; harm == 0 {
					bad = bad[:i]
				}
				dir, file2, note2 := filled(t)
				if name == note {
					file2 = note2
				}
				if err := os.WriteFile(file2, bad, 0o600); err != nil {
					t.Fatal(err)
				}
				f := found(t, dir)
				if f == nil || name == note && slices.Equal(f.Tokens, []token{5, 6, 7}) && f.Bytes == 40 {
					continue
				}
				t.Errorf("%s with byte %d changed by %#x is offered: %+v", filepath.Base(name), i, harm, f)
			}
		}
	}
}
