package state_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/prompt/orders"
	"github.com/ragpilot/ragpilot/internal/sidecar/state"
)

// file is the state's.
const file = "state.db"

// writeOrders notes 600 orders and returns the bytes of the file, and the orders by number.
func writeOrders(t *testing.T) (data []byte, noted [][]int) {
	t.Helper()
	dir := t.TempDir()
	s := open(t, dir)
	r := rand.New(rand.NewPCG(600, 600))
	store := s.Orders(orders.NewMemory(0, 0))
	for i := range 600 {
		order := r.Perm(2 + r.IntN(30))
		store.Put(t.Context(), fmt.Sprint("tenant ", i%3), key(i), order)
		noted = append(noted, order)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	return data, noted
}

func key(i int) (k orders.Key) {
	binary.LittleEndian.PutUint64(k[:], uint64(i+1))
	return k
}

// restore opens a state with these bytes. It returns the orders that came back, how many damages were counted, and the log.
func restore(t *testing.T, data []byte) (mem *orders.Memory, damages int, log string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	s, err := state.Open(dir, slog.New(slog.NewTextHandler(&lines, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	mem = orders.NewMemory(0, 0)
	if got, err := s.Restore(mem, newPilot(t)); err != nil || got.Skipped != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	store := s.Orders(mem) // it goes on
	store.Put(t.Context(), "later", orders.Key{1}, []int{1, 0})
	return mem, s.Damages(), lines.String()
}

// A hundred accidents, each to a state of 600 orders: no order comes back as another, whatever is lost is counted and logged, and the state
// goes on.
func TestAccidents(t *testing.T) {
	whole, noted := writeOrders(t)
	for seed := range uint64(100) {
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
		lost := 0
		for i, want := range noted {
			got, ok := mem.Get(t.Context(), fmt.Sprint("tenant ", i%3), key(i))
			switch {
			case !ok:
				lost++
			case !slices.Equal(got, want):
				t.Fatalf("seed %d: order %d came back as %v, was %v", seed, i, got, want)
			}
		}
		noticed := damages > 0 && strings.Count(log, "level=WARN") == 1
		if lost > 0 && !noticed || bytes.Equal(data, whole) && (lost > 0 || log != "") {
			t.Fatalf("seed %d: %d orders lost, %d damages, log %q", seed, lost, damages, log)
		}
	}
}

// A damaged record is lost alone.
func TestDamagedRecord(t *testing.T) {
	data, _ := writeOrders(t)
	for i := range 4 {
		at := bytes.Index(data, fmt.Appendf(nil, `"k":"%02x%02x`, (100*i+1)%256, (100*i+1)/256))
		if at < 0 {
			t.Fatalf("order %d is not in the file", 100*i)
		}
		data[at] ^= 1
	}
	mem, damages, log := restore(t, data)
	if damages != 4 || strings.Count(log, "\n") != 1 || !strings.Contains(log, "damages=4") {
		t.Errorf("%d damages, log %q", damages, log)
	}
	for i := range 600 {
		if _, ok := mem.Get(t.Context(), fmt.Sprint("tenant ", i%3), key(i)); ok == (i%100 == 0 && i < 400) {
			t.Errorf("order %d: %v", i, ok)
		}
	}
}

// What is no state at all, or another release's, is set aside and named in the log.
func TestSetAside(t *testing.T) {
	whole, _ := writeOrders(t)
	other := slices.Clone(whole)
	binary.BigEndian.PutUint32(other[60:], 7) // SQLite's user_version
	for name, data := range map[string][]byte{"another release": other, "no database": bytes.Repeat([]byte("text "), 2000)} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
			t.Fatal(err)
		}
		var lines strings.Builder
		s, err := state.Open(dir, slog.New(slog.NewTextHandler(&lines, nil)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := lines.String(); strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, file+".aside") || s.Damages() != 1 {
			t.Errorf("%s: log %q", name, got)
		}
		if kept, err := os.ReadFile(filepath.Join(dir, file+".aside")); err != nil || !bytes.Equal(kept, data) {
			t.Errorf("%s: the file set aside has %d bytes, %v", name, len(kept), err)
		}
		s = again(t, s, dir)
		if s.Damages() != 0 {
			t.Errorf("%s: damaged again", name)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
