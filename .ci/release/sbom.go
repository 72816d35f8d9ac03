package main

import (
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
)

// bill is what is read of a bill of materials in CycloneDX.
type bill struct {
	Format   string `json:"bomFormat"`
	Metadata struct {
		Component component `json:"component"`
	} `json:"metadata"`
	Components []component `json:"components"`
}

type component struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	URL     string `json:"purl"`
}

// check compares a bill with what the binary itself says that it was built from, and looks at how it was built.
func check(binary, sbom string, out io.Writer) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(sbom)
	if err != nil {
		return err
	}
	var b bill
	if err := json.Unmarshal(text, &b); err != nil {
		return fmt.Errorf("%s: %w", sbom, err)
	}
	if err := errors.Join(built(info), compare(info, b)); err != nil {
		return fmt.Errorf("%s, %s: %w", binary, sbom, err)
	}
	_, err = fmt.Fprintf(out, "%s names all %d modules of %s and Go's own library\n", sbom, len(info.Deps), binary)
	return err
}

// built reports whether a binary can be built again to the same bytes elsewhere.
func built(info *debug.BuildInfo) error {
	var faults []error
	for key, want := range map[string]string{"CGO_ENABLED": "0", "-trimpath": "true", "vcs.revision": ""} {
		i := slices.IndexFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == key })
		if i < 0 || want != "" && info.Settings[i].Value != want {
			faults = append(faults, fmt.Errorf("not built with %s %s", key, want))
		}
	}
	return errors.Join(faults...)
}

// compare returns an error for each module that only one of both names, and for each in another version.
func compare(info *debug.BuildInfo, b bill) error {
	if b.Format != "CycloneDX" {
		return fmt.Errorf("bomFormat %q: want CycloneDX", b.Format)
	}
	var faults []error
	if b.Metadata.Component.Name != info.Main.Path {
		faults = append(faults, fmt.Errorf("it is about %q, not about %s", b.Metadata.Component.Name, info.Main.Path))
	}
	versions := map[string]string{"std": info.GoVersion}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		versions[m.Path] = m.Version
	}
	for _, c := range b.Components {
		version, ok := versions[c.Name]
		delete(versions, c.Name)
		switch {
		case !ok:
			faults = append(faults, fmt.Errorf("%s %s is not in the binary", c.Name, c.Version))
		case c.Version != version:
			faults = append(faults, fmt.Errorf("%s %s is in the binary as %s", c.Name, c.Version, version))
		case !strings.HasPrefix(c.URL, "pkg:golang/"+c.Name+"@"+c.Version):
			faults = append(faults, fmt.Errorf("%s %s has the package URL %q", c.Name, c.Version, c.URL))
		}
	}
	for name, version := range versions {
		faults = append(faults, fmt.Errorf("%s %s is missing", name, version))
	}
	return errors.Join(faults...)
}
