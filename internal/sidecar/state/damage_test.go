package state_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/internal/prompt/orders"
	"github.com/ragpilot/ragpilot/internal/sidecar/state"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// note is an order in the state's file.
type note struct {
	key        orders.Key
	order      []int
	start, end int
}

const (
	file       = "0000000000000001.journal"
	headerSize = 32
	recordHead = 20
)

// writeOrders notes 600 orders and returns the file that they are in, and where.
func writeOrders(t *testing.T) (data []byte, notes []note) {
	t.Helper()
	dir := t.TempDir()
	s := open(t, dir)
	r := rand.New(rand.NewPCG(600, 600))
	store := s.Orders(orders.NewMemory(0, 0))
	for i := range 600 {
		var k orders.Key
		binary.LittleEndian.PutUint64(k[:], uint64(i+1))
		store.Put(t.Context(), fmt.Sprint("tenant ", i%3), k, r.Perm(2+r.IntN(30)))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	for at := headerSize; at < len(data); {
		n := note{start: at, end: at + recordHead + int(binary.LittleEndian.Uint32(data[at:]))}
		var rec struct {
			O struct {
				K string
				O []int
			}
		}
		if err := json.Unmarshal(data[at+recordHead:n.end], &rec); err != nil {
			t.Fatal(err)
		}
		raw, err := hex.DecodeString(rec.O.K)
		if err != nil {
			t.Fatal(err)
		}
		n.key, n.order = orders.Key(raw), rec.O.O
		notes, at = append(notes, n), n.end
	}
	if len(notes) != 600 {
		t.Fatalf("%d notes", len(notes))
	}
	return data, notes
}

// restore opens a state with these bytes. It returns the orders that came back, how many damages were counted, and the log.
func restore(t *testing.T, data []byte) (mem *orders.Memory, damages int, log string) {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "state") // closing it would wait for a disk 200 times
	if err != nil {
		dir = t.TempDir()
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	s, err := state.Open(dir, slog.New(slog.NewTextHandler(&lines, nil)))
	if err != nil {
		t.Fatal(err)
	}
	mem = orders.NewMemory(0, 0)
	if got, err := s.Restore(mem, newPilot(t)); err != nil || got.Skipped != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	damages = s.Damages()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return mem, damages, lines.String()
}

// Two hundred accidents, each to a state of 600 orders: those that are not hit come back, those that are do not come back
// as others, and each accident is counted and logged.
func TestAccidentsLoseOnlyWhatTheyHit(t *testing.T) {
	if testing.Short() { // one goroutine is at work for most of the time
		testkit.NotUnderRace(t)
	}
	whole, notes := writeOrders(t)
	hit := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		data := slices.Clone(whole)
		at := r.IntN(len(data))
		part := data[at:min(at+1+r.IntN(1000), len(data))]
		switch r.IntN(3) {
		case 0:
			part[0] ^= 1 << r.IntN(8)
		case 1:
			clear(part)
		default:
			for i := range part {
				part[i] = byte(r.Uint32())
			}
		}
		mem, damages, log := restore(t, data)
		for i, n := range notes {
			got, ok := mem.Get(t.Context(), fmt.Sprint("tenant ", i%3), n.key)
			same := bytes.Equal(data[n.start:n.end], whole[n.start:n.end])
			switch {
			case ok && !slices.Equal(got, n.order):
				t.Errorf("seed %d: order %d came back as %v, was %v", seed, i, got, n.order)
			case same && !ok:
				t.Errorf("seed %d: order %d was not hit and is lost", seed, i)
			case !same && ok:
				t.Errorf("seed %d: order %d was hit and came back", seed, i)
			case !same:
				hit++
			}
		}
		switch warnings := strings.Count(log, "level=WARN"); {
		case bytes.Equal(data, whole):
			if damages != 0 || log != "" {
				t.Errorf("seed %d: nothing was changed: %d damages, %s", seed, damages, log)
			}
		case damages == 0 && strings.Contains(log, "half written"): // an accident at the very end may look like that
			if notes[len(notes)-1].end <= at {
				t.Errorf("seed %d: %s", seed, log)
			}
		case damages != 1 || warnings != 1 || !strings.Contains(log, "file="+file+" damages=1 bytes="):
			t.Errorf("seed %d: %d damages, log %s", seed, damages, log)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d orders of %d were hit, all others came back", hit, 200*len(notes))
}

// The log says once for each file what was lost, and names state of an earlier release that was set aside.
func TestDamageIsLogged(t *testing.T) {
	whole, notes := writeOrders(t)
	data := slices.Clone(whole)
	for _, i := range []int{3, 4, 100, 500} { // two of them side by side
		data[notes[i].end-1] ^= 1
	}
	mem, damages, log := restore(t, data)
	lost := 0
	for _, i := range []int{3, 4, 100, 500} {
		lost += notes[i].end - notes[i].start
	}
	if want := fmt.Sprintf("damages=3 bytes=%d", lost); damages != 3 || strings.Count(log, "\n") != 1 || !strings.Contains(log, want) {
		t.Errorf("%d damages, log %q, want %s", damages, log, want)
	}
	if _, ok := mem.Get(t.Context(), "tenant 0", notes[597].key); !ok {
		t.Error("the order behind the last damage is lost")
	}
	dir := t.TempDir()
	old := slices.Clone(whole)
	old[7] = 1 // its format
	binary.LittleEndian.PutUint64(old[24:], xxh3.Hash(old[:24]))
	if err := os.WriteFile(filepath.Join(dir, file), old, 0o600); err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	s, err := state.Open(dir, slog.New(slog.NewTextHandler(&lines, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := lines.String(); strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, file+".old") {
		t.Errorf("log %q", got)
	}
}
