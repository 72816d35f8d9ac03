package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":       "module m\n\ngo 1.26\n",
		"a.go":         "package m\n\nconst Large int = 1 << 40\n",
		"a_windows.go": "package m\n\nvar X = missing\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct{ platform, want string }{
		{"linux/amd64", ""},
		{"linux/386", "overflows"},
		{"windows/amd64", "undefined: missing"},
		{"linux", "is no platform"},
	} {
		var out strings.Builder
		_, err := check(dir, x.platform, &out)
		if err != nil {
			out.WriteString(err.Error())
		}
		if (err != nil) != (x.want != "") || !strings.Contains(out.String(), x.want) {
			t.Errorf("%s: %v, %q, want %q", x.platform, err, &out, x.want)
		}
	}
}
