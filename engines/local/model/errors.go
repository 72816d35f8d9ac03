package model

import (
	"errors"

	"github.com/ragpilot/ragpilot/internal/nn/pippull"
)

var (
	// ErrUnknown: there is no model of this name.
	ErrUnknown = errors.New("no such model")
	// ErrNoTool: there is no program that fetches Python packages.
	ErrNoTool = pippull.ErrNoTool
	// ErrDownload: the program failed; the error says how it ended.
	ErrDownload = pippull.ErrDownload
	// ErrNetwork: it failed because it reached nothing. Such an error is an ErrDownload too.
	ErrNetwork = pippull.ErrNetwork
	// ErrChecksum: what came is not the file that was asked for.
	ErrChecksum = pippull.ErrChecksum
)
