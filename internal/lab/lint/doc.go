// Package lint looks for what keeps requests from sharing a prefix: in files of request bodies, in golden prompts and in Go templates.
package lint
