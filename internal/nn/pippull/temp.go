package pippull

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// stale is after what time a temporary folder is removed even if a process of its number runs: numbers are used again.
const stale = 24 * time.Hour

// NewTemp makes a temporary folder within dir, called "<prefix><process>-<host>-<random>". The caller removes it; if it is
// killed, a later [RemoveStale] does.
func NewTemp(dir, prefix string) (string, error) {
	return os.MkdirTemp(dir, fmt.Sprintf("%s%d-%s-*", prefix, os.Getpid(), host()))
}

// host is this machine's or container's name, short and fit for a file's name.
func host() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:4])
}

// RemoveStale removes the temporary folders, those that [NewTemp] makes within dir with this prefix, of processes of this
// host that are gone, and those that are a day old: whether a process of another host runs cannot be seen. What cannot be
// removed stays: its name differs from that of what was pulled.
func RemoveStale(dir, prefix string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), prefix)
		if !ok || !e.IsDir() {
			continue
		}
		running, ours := owner(rest)
		info, err := e.Info()
		if !ours || err != nil || running && time.Since(info.ModTime()) < stale {
			continue
		}
		os.RemoveAll(filepath.Join(dir, e.Name()))
	}
}

// owner reads the end of a folder's name: whether it is one of NewTemp's, and whether its process runs or may run. Names
// without a host are of this one.
func owner(name string) (running, ours bool) {
	number, rest, found := strings.Cut(name, "-")
	process, err := strconv.Atoi(number)
	if !found || err != nil {
		return false, false
	}
	at, _, named := strings.Cut(rest, "-")
	return named && at != host() || alive(process), true
}
