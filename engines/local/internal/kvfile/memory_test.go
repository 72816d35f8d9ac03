package kvfile_test

import (
	"errors"
	"io/fs"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/engines/local/internal/kvfile"
)

// tierMachine compares a Memory with a list of what was used, the last one last.
type tierMachine struct {
	tier   *kvfile.Memory
	folder *kvfile.Folder // nil: none
	salted bool
	room   int
	memory []kvfile.ID
	files  map[kvfile.ID]bool
	gone   map[[32]byte]bool
}

func (m *tierMachine) id(t *rapid.T) kvfile.ID {
	x := id(rapid.IntRange(1, 6).Draw(t, "page"))
	if rapid.Bool().Draw(t, "salted") {
		x.Salt = [32]byte{9}
		x.Page[31] = 1 // the hash of a page depends on the salt
	}
	return x
}

func (m *tierMachine) number(x kvfile.ID) int { return int(x.Page[0]) + 100*int(x.Page[31]) }

func (m *tierMachine) below(x kvfile.ID) bool {
	return m.folder != nil && (m.salted || x.Salt == [32]byte{})
}

// use makes a page the last one used.
func (m *tierMachine) use(x kvfile.ID) {
	m.memory = append(slices.DeleteFunc(m.memory, func(y kvfile.ID) bool { return y == x }), x)
	if len(m.memory) > m.room {
		m.gone[m.memory[0].Page] = true
		m.memory = m.memory[1:]
	}
}

func (m *tierMachine) Write(t *rapid.T) {
	x := m.id(t)
	if err := m.tier.Write(x, page(m.number(x))); err != nil {
		t.Fatal(err)
	}
	m.tier.Flush()
	m.use(x)
	if m.below(x) {
		m.files[x] = true
	}
}

func (m *tierMachine) Read(t *rapid.T) {
	x, got := m.id(t), make([]float32, floats)
	err := m.tier.Read(x, got)
	if !slices.Contains(m.memory, x) && !m.files[x] {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("a page that is not there: %v", err)
		}
		return
	}
	if err != nil || !same(got, page(m.number(x))) {
		t.Fatalf("page %d: %v, or other numbers", m.number(x), err)
	}
	m.use(x)
}

func (m *tierMachine) Forget(t *rapid.T) {
	salt := m.id(t).Salt
	if err := m.tier.Forget(salt); err != nil {
		t.Fatal(err)
	}
	m.memory = slices.DeleteFunc(m.memory, func(x kvfile.ID) bool { return x.Salt == salt })
	for x := range m.files {
		if x.Salt == salt {
			delete(m.files, x)
			m.gone[x.Page] = true
		}
	}
}

func (m *tierMachine) Clear(*rapid.T) {
	m.tier.Clear()
	for _, x := range m.memory {
		m.gone[x.Page] = true
	}
	m.memory = nil
}

func (m *tierMachine) Removed(t *rapid.T) {
	there := map[[32]byte]bool{}
	for _, x := range m.memory {
		there[x.Page] = true
	}
	for x := range m.files {
		there[x.Page] = true
	}
	reported := map[[32]byte]bool{}
	for _, p := range m.tier.Removed() {
		// A folder reports what was forgotten, though it has been written once more since.
		if there[p] && m.folder == nil || !m.gone[p] {
			t.Fatalf("page %d is reported: it is there (%v), or was never", p[0], there[p])
		}
		reported[p] = true
	}
	for p := range m.gone {
		if !there[p] && !reported[p] {
			t.Fatalf("page %d has gone and was not reported", p[0])
		}
	}
	clear(m.gone)
}

// Check is called after every action.
func (m *tierMachine) Check(t *rapid.T) {
	if n := m.tier.Pages(); n != len(m.memory) || n > m.room {
		t.Fatalf("%d pages in memory, want %d of at most %d", n, len(m.memory), m.room)
	}
	for n := range 6 {
		for _, salt := range []byte{0, 9} {
			x := id(n + 1)
			x.Salt[0], x.Page[31] = salt, min(salt, 1)
			if got := m.tier.Has(x); got != (slices.Contains(m.memory, x) || m.files[x]) {
				t.Fatalf("page %d is there: %v", m.number(x), got)
			}
		}
	}
}

// TestMemory: what was used longest ago leaves memory first, the folder keeps what it may have, and what is in neither is reported.
func TestMemory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &tierMachine{
			room: rapid.IntRange(1, 5).Draw(rt, "room"), salted: rapid.Bool().Draw(rt, "salted files"),
			files: map[kvfile.ID]bool{}, gone: map[[32]byte]bool{},
		}
		if rapid.IntRange(0, 7).Draw(rt, "folder") == 7 { // each of its pages is synced
			m.folder = open(t, config(t.TempDir()))
			defer m.folder.Close()
		}
		m.tier = kvfile.NewMemory(m.room, m.folder, m.salted)
		defer m.tier.Close()
		rt.Repeat(rapid.StateMachineActions(m))
	})
}

// TestForgetWhileReading: a page that is read from the folder while its salt is forgotten does not stay in memory.
func TestForgetWhileReading(t *testing.T) {
	folder := open(t, config(t.TempDir()))
	m := kvfile.NewMemory(4, folder, true)
	defer m.Close()
	x := id(1)
	x.Salt = [32]byte{9}
	for range 50 {
		if err := m.Write(x, page(1)); err != nil {
			t.Fatal(err)
		}
		m.Flush()
		m.Clear()
		var reads sync.WaitGroup
		for range 4 {
			reads.Go(func() { _ = m.Read(x, make([]float32, floats)) })
		}
		if err := m.Forget(x.Salt); err != nil {
			t.Fatal(err)
		}
		reads.Wait()
		if m.Has(x) {
			t.Fatal("a page that was forgotten is there")
		}
	}
}
