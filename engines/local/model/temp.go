package model

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Temporary folders are called ".pull-<process>-<random>".
const tempPrefix = ".pull-"

// stale is after what time a temporary folder is removed even if a process of its number runs: numbers are used again.
const stale = 24 * time.Hour

func newTemp(dir string) (string, error) {
	return os.MkdirTemp(dir, fmt.Sprintf("%s%d-", tempPrefix, os.Getpid()))
}

// removeStale removes the temporary folders of pulls that were killed. What cannot be removed stays: it is no model.
func removeStale(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), tempPrefix)
		number, _, found := strings.Cut(rest, "-")
		process, err := strconv.Atoi(number)
		if !ok || !found || err != nil || !e.IsDir() {
			continue
		}
		info, err := e.Info()
		if err != nil || alive(process) && time.Since(info.ModTime()) < stale {
			continue
		}
		os.RemoveAll(filepath.Join(dir, e.Name()))
	}
}
