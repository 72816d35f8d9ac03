package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestPack: the same files give the same bytes, whatever their folder, their times and rights are, and what is in the
// archive are these files.
func TestPack(t *testing.T) {
	for _, name := range []string{"ragpilot_v1_linux_amd64.tar.gz", "ragpilot_v1_windows_amd64.zip"} {
		t.Run(name, func(t *testing.T) {
			var all [2][]byte
			for i := range all {
				dir := t.TempDir()
				var files []string
				for _, f := range []struct {
					name string
					mode os.FileMode
				}{{"ragpilot", 0o700 + os.FileMode(i)*0o055}, {"README.md", 0o600 + os.FileMode(i)*0o044}} {
					file := filepath.Join(dir, f.name)
					if err := os.WriteFile(file, []byte(f.name+"'s text"), f.mode); err != nil {
						t.Fatal(err)
					}
					if err := os.Chtimes(file, time.Time{}, time.Unix(1e9+int64(i), 0)); err != nil {
						t.Fatal(err)
					}
					files = append(files, file)
				}
				if i == 1 {
					slices.Reverse(files)
				}
				archive := filepath.Join(dir, name)
				if err := run(append([]string{"pack", archive, "1700000000"}, files...), io.Discard); err != nil {
					t.Fatal(err)
				}
				all[i] = read(t, archive)
				want := fmt.Sprint([]string{"README.md 644 README.md's text", "ragpilot 755 ragpilot's text"})
				if got := fmt.Sprint(unpack(t, archive)); got != want {
					t.Errorf("it holds\n%s, want\n%s", got, want)
				}
			}
			if !bytes.Equal(all[0], all[1]) {
				t.Error("other bytes for the same files")
			}
		})
	}
}

func TestPackRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"no archive":   {"pack", filepath.Join(dir, "x.rar"), "1", file},
		"no time":      {"pack", filepath.Join(dir, "x.zip"), "now", file},
		"no such file": {"pack", filepath.Join(dir, "x.zip"), "1", file + "b"},
		"twice":        {"pack", filepath.Join(dir, "x.zip"), "1", file, file},
	} {
		if run(args, io.Discard) == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := run([]string{"unpack", "x"}, io.Discard); !errors.Is(err, errUsage) {
		t.Errorf("got %v", err)
	}
}

func TestSums(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b", "a"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := run([]string{"sums", dir}, &out); err != nil {
		t.Fatal(err)
	}
	const want = "87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7  a\n0263829989b6fd954f72baaf2fc64bc2e2f01d692d4de72986ea808f6e99813f  b\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
}

// TestCompare: what is missing in a bill, too much in it, or of another version, is named.
func TestCompare(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Path: "example.org/main"}, Deps: []*debug.Module{
		{Path: "example.org/a", Version: "v1.0.0"},
		{Path: "example.org/b", Version: "v2.0.0", Replace: &debug.Module{Path: "example.org/fork", Version: "v2.0.1"}},
	}}
	part := func(name, version string) component {
		return component{name, version, "pkg:golang/" + name + "@" + version + "?type=module"}
	}
	whole := []component{part("example.org/a", "v1.0.0"), part("example.org/fork", "v2.0.1"), part("std", "go1.26.0")}
	for name, c := range map[string]struct {
		parts []component
		want  string // "": no error
	}{
		"whole":         {whole, ""},
		"lacks one":     {whole[1:], "example.org/a v1.0.0 is missing"},
		"lacks Go":      {whole[:2], "std go1.26.0 is missing"},
		"other version": {append([]component{part("example.org/a", "v0.9.0")}, whole[1:]...), "example.org/a v0.9.0 is in the binary as v1.0.0"},
		"unknown":       {append([]component{part("example.org/c", "v1.0.0")}, whole...), "example.org/c v1.0.0 is not in the binary"},
		"replaced":      {append([]component{part("example.org/b", "v2.0.0")}, whole...), "example.org/b v2.0.0 is not in the binary"},
		"wrong URL":     {append([]component{{"example.org/a", "v1.0.0", "pkg:npm/a@v1.0.0"}}, whole[1:]...), "package URL"},
	} {
		t.Run(name, func(t *testing.T) {
			b := bill{Format: "CycloneDX", Components: c.parts}
			b.Metadata.Component.Name = info.Main.Path
			switch err := compare(info, b); {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if compare(info, bill{Format: "CycloneDX", Components: whole}) == nil || compare(info, bill{}) == nil {
		t.Error("a bill of something else was accepted")
	}
}

func TestBuilt(t *testing.T) {
	good := []debug.BuildSetting{{Key: "CGO_ENABLED", Value: "0"}, {Key: "-trimpath", Value: "true"}, {Key: "vcs.revision", Value: "abc"}}
	if err := built(&debug.BuildInfo{Settings: good}); err != nil {
		t.Error(err)
	}
	for i := range good {
		if built(&debug.BuildInfo{Settings: slices.Delete(slices.Clone(good), i, i+1)}) == nil {
			t.Errorf("without %s: no error", good[i].Key)
		}
	}
}

func TestLicenceNames(t *testing.T) {
	for name, want := range map[string]bool{
		"LICENSE": true, "LICENSE.md": true, "License.txt": true, "LICENCE": true, "COPYING": true, "NOTICE": true, "LICENSE-MIT": true,
		"README.md": false, "licenses": false, "notices.go": false,
	} {
		if licence.MatchString(name) != want {
			t.Errorf("%s: want %v", name, want)
		}
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// unpack returns name, rights and text of each file, and checks its folder and its time.
func unpack(t *testing.T, archive string) (all []string) {
	t.Helper()
	take := func(name string, at time.Time, mode os.FileMode, from io.Reader) {
		text, err := io.ReadAll(from)
		if err != nil {
			t.Fatal(err)
		}
		folder, base, _ := strings.Cut(name, "/")
		if !strings.HasPrefix(filepath.Base(archive), folder+".") || at.Unix() != 1_700_000_000 {
			t.Errorf("%s of %v", name, at)
		}
		all = append(all, fmt.Sprintf("%s %o %s", base, mode, text))
	}
	text := read(t, archive)
	if strings.HasSuffix(archive, ".zip") {
		z, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range z.File {
			from, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			take(f.Name, f.Modified, f.Mode(), from)
		}
		return all
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		take(h.Name, h.ModTime, os.FileMode(h.Mode), r)
	}
}
