package main

import (
	"slices"
	"testing"
)

func TestAffected(t *testing.T) {
	packages := map[string]listed{
		".":          {ImportPath: "m"},
		"core":       {ImportPath: "m/core"},
		"core/inner": {ImportPath: "m/core/inner"},
		"front":      {ImportPath: "m/front", Imports: []string{"fmt", "m/core"}},
		"program":    {ImportPath: "m/program", Imports: []string{"m/front"}},
		"kit":        {ImportPath: "m/kit"},
		"tested":     {ImportPath: "m/tested", TestImports: []string{"m/kit"}},
		"outside":    {ImportPath: "m/outside", XTestImports: []string{"m/core"}},
		"user":       {ImportPath: "m/user", Imports: []string{"m/tested"}},
	}
	for _, x := range []struct {
		files, want []string
	}{
		{nil, nil},
		{[]string{"core/a.go"}, []string{"core", "front", "outside", "program"}},
		{[]string{"core/inner/testdata/deep/a.json"}, []string{"core/inner"}},
		{[]string{"core/testdata/a.json"}, []string{"core", "front", "outside", "program"}},
		{[]string{"kit/kit.go"}, []string{"kit", "tested"}},
		{[]string{"program/a.go", "kit/a_test.go"}, []string{"kit", "program", "tested"}},
		{[]string{"README.md"}, []string{"."}},
		{[]string{"go.sum"}, []string{".", "core", "core/inner", "front", "kit", "outside", "program", "tested", "user"}},
	} {
		if got := affected(packages, x.files); !slices.Equal(got, x.want) {
			t.Errorf("%q concerns %q, want %q", x.files, got, x.want)
		}
	}
}
