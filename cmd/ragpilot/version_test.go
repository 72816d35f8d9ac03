package main

import (
	"runtime/debug"
	"testing"
)

func TestVersionLine(t *testing.T) {
	whole := &debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: "v1.2.2+dirty"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123abcd"}, {Key: "vcs.modified", Value: "true"},
	}}
	clean := &debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: "(devel)"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123abcd"}, {Key: "vcs.modified", Value: "false"},
	}}
	for name, c := range map[string]struct {
		linked string
		info   *debug.BuildInfo
		want   string
	}{
		"release":          {"v1.2.3", clean, "ragpilot v1.2.3 0123abcd go1.26.0"},
		"modified":         {"v1.2.3-dirty", whole, "ragpilot v1.2.3-dirty 0123abcd (modified) go1.26.0"},
		"go install":       {"", whole, "ragpilot v1.2.2+dirty 0123abcd (modified) go1.26.0"},
		"go build":         {"", clean, "ragpilot devel 0123abcd go1.26.0"},
		"nothing is known": {"", new(debug.BuildInfo), "ragpilot devel"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := versionLine(c.linked, c.info); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
