package minilm

import "github.com/ragpilot/ragpilot/internal/nn/pippull"

// What [Pull] can fail of, for errors.Is.
var (
	// ErrNoTool: there is no program that fetches Python packages.
	ErrNoTool = pippull.ErrNoTool
	// ErrDownload: the program failed; the error says how it ended.
	ErrDownload = pippull.ErrDownload
	// ErrNetwork: it failed because it reached nothing. Such an error is an ErrDownload too.
	ErrNetwork = pippull.ErrNetwork
	// ErrChecksum: what came is not the model, byte for byte.
	ErrChecksum = pippull.ErrChecksum
)
