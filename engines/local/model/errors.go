package model

import "errors"

var (
	// ErrUnknown: there is no model of this name.
	ErrUnknown = errors.New("no such model")
	// ErrNoTool: there is no program that fetches Python packages.
	ErrNoTool = errors.New("no program to fetch Python packages was found")
	// ErrDownload: the program failed; the error says how it ended.
	ErrDownload = errors.New("the download failed")
	// ErrNetwork: it failed because it reached nothing. Such an error is an ErrDownload too.
	ErrNetwork = errors.New("the network or the package index cannot be reached")
	// ErrChecksum: what came is not the file that was asked for.
	ErrChecksum = errors.New("wrong checksum")
)
