package settings

import "log/slog"

// baseBytes is what the program takes before anything is remembered: code, metrics, connections and their buffers.
const baseBytes = 128 << 20

// modelBytes is what the sentence model of memories takes: its weights and what it computes with.
const modelBytes = 128 << 20

// MemoryLimit is the Go runtime's memory limit that fits the settings: what is remembered, with a quarter more for what the
// allocator cannot use, twice the bodies in flight, which are held as they came and as they are sent, the sentence model if memories are found by it, and a base. Near it garbage is
// collected more often, so it is more than is ever needed for long.
func (c Config) MemoryLimit() int64 {
	limit := baseBytes + c.Limits.MemoryBytes/4*5 + 2*c.Limits.InFlightBytes
	if c.Memory.Dir != "" && c.Memory.Embedding().InProcess() {
		limit += modelBytes
	}
	return limit
}

// LimitMemory sets the Go runtime's memory limit, unless the variable GOMEMLIMIT of the environment does.
func (c Config) LimitMemory(lookup func(string) (string, bool), set func(int64) int64, log *slog.Logger) {
	if given, ok := lookup("GOMEMLIMIT"); ok && given != "" {
		log.Info("memory limit of the Go runtime", "from", "GOMEMLIMIT", "value", given)
		return
	}
	limit := c.MemoryLimit()
	set(limit)
	log.Info("memory limit of the Go runtime", "from", "limits", "bytes", limit)
}
