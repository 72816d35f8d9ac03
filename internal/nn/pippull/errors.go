package pippull

import (
	"context"
	"errors"
	"fmt"
)

// What a pull can fail of, for errors.Is. The packages that use this one offer them under the same names.
var (
	// ErrNoTool: there is no program that fetches Python packages.
	ErrNoTool = errors.New("no program to fetch Python packages was found")
	// ErrDownload: the program failed; the error says how it ended.
	ErrDownload = errors.New("the download failed")
	// ErrNetwork: it failed because it reached nothing. Such an error is an ErrDownload too.
	ErrNetwork = errors.New("the network or the package index cannot be reached")
	// ErrChecksum: what came is not the file that was asked for. This package returns no such error: its users do.
	ErrChecksum = errors.New("wrong checksum")
)

// OrCause returns err or, if the context is over, for then everything fails, an error that wraps the context's and its cause.
func OrCause(ctx context.Context, err error) error {
	over, cause := ctx.Err(), context.Cause(ctx)
	switch {
	case over == nil, errors.Is(err, over) && errors.Is(err, cause):
		return err
	case errors.Is(cause, over):
		return cause
	default:
		return fmt.Errorf("%w: %w", over, cause)
	}
}
