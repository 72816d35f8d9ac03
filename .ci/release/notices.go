package main

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// licence matches the names of the files that must go with a program that was built from a module.
var licence = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|unlicense)([.-].*)?$`)

// notices prints these files of each module of a binary, and of Go itself. It is an error if a module has none.
func notices(binary string, out io.Writer) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s contains the modules below, under the licences below.\n", info.Main.Path)
	root, err := exec.CommandContext(context.Background(), "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env GOROOT: %w", err)
	}
	if err := notice("Go's own library "+info.GoVersion, strings.TrimSpace(string(root)), out); err != nil {
		return err
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		name := m.Path + "@" + m.Version
		text, err := exec.CommandContext(context.Background(), "go", "mod", "download", "-json", name).Output()
		if err != nil {
			return fmt.Errorf("go mod download %s: %w: %s", name, err, text)
		}
		var at struct{ Dir string }
		if err := json.Unmarshal(text, &at); err != nil {
			return fmt.Errorf("go mod download %s: %w", name, err)
		}
		if err := notice(name, at.Dir, out); err != nil {
			return err
		}
	}
	return nil
}

func notice(name, folder string, out io.Writer) error {
	entries, err := os.ReadDir(folder) // sorted
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	found := false
	for _, e := range entries {
		if e.IsDir() || !licence.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		found = true
		fmt.Fprintf(out, "\n%s\n%s: %s\n%[1]s\n\n%[4]s\n", strings.Repeat("=", 100), name, e.Name(), strings.TrimSpace(string(text)))
	}
	if !found {
		return fmt.Errorf("%s: no file that looks like a licence in %s", name, folder)
	}
	return nil
}
