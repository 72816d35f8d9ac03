package main

import (
	"cmp"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by builds of a release: -ldflags "-X main.version=v1.2.3".
var version string

func newVersion() *cobra.Command {
	return newCommand("version", "Print the version, the commit and the version of Go", "", func(cmd *cobra.Command) error {
		info, ok := debug.ReadBuildInfo()
		if !ok {
			info = new(debug.BuildInfo)
		}
		_, err := fmt.Fprintln(cmd.OutOrStdout(), versionLine(version, info))
		return err
	})
}

// versionLine says what was built: "ragpilot v1.2.3 0123abcd (modified) go1.26.0", without what is not known. The version
// that was linked in is stronger than the one that the go command found.
func versionLine(linked string, info *debug.BuildInfo) string {
	line := "ragpilot " + cmp.Or(linked, tagOf(info), "devel")
	var commit, modified string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = " " + s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = " (modified)"
		}
	}
	line += commit + modified
	if info.GoVersion != "" {
		line += " " + info.GoVersion
	}
	return line
}

func tagOf(info *debug.BuildInfo) string {
	if info.Main.Version == "(devel)" {
		return ""
	}
	return info.Main.Version
}
