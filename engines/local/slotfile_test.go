package local_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines/internal/slotnote"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/local/localtest"
)

// A context's slot file is as long as its note says and has a token for each slot; what does not fit names its field.
func TestWriteSlotFile(t *testing.T) {
	dir := t.TempDir()
	model := filepath.Join(dir, "tiny.gguf")
	if err := localtest.WriteModel(model, 1); err != nil {
		t.Fatal(err)
	}
	var sizes []int64
	var tokens [][]int32
	for i, budget := range []string{"32", "100%"} {
		c := local.Compression{
			Model: model, Task: "Answer.", Notes: "The lamp is lit.", Budget: budget, Out: filepath.Join(dir, "context"+budget), Format: "f32",
			Documents: []local.Document{{Name: "a", Text: strings.Repeat("The lamp is lit. ", 20)}},
		}
		compressed, err := local.Compress(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		s := local.SlotFile{Model: model, Context: c.Out, Out: filepath.Join(dir, "a.slot"), Type: []string{"f16", "f32"}[i], Parallel: 1 + i}
		w, err := local.WriteSlotFile(s)
		if err != nil {
			t.Fatal(err)
		}
		note, err := slotnote.Read(w.File)
		if err != nil {
			t.Fatal(err)
		}
		if err := note.Whole(w.File); err != nil || w.Tokens != compressed.Slots || len(note.Tokens) != compressed.Slots || note.Parallel != 1+i {
			t.Errorf("%+v, note %+v, error %v", w, note, err)
		}
		sizes, tokens = append(sizes, w.Bytes), append(tokens, note.Tokens)
	}
	if tokens[0][0] == tokens[1][0] && tokens[0][1] == tokens[1][1] {
		t.Error("two contexts begin with the same tokens")
	}
	if perSlot := (sizes[1] - sizes[0]) / int64(len(tokens[1])-len(tokens[0])); sizes[0] < 1000 || perSlot < 100 {
		t.Errorf("sizes %v", sizes)
	}
	other := filepath.Join(dir, "other")
	if err := os.WriteFile(other, []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := local.SlotFile{Model: model, Context: filepath.Join(dir, "context32"), Out: filepath.Join(dir, "b.slot")}
	for want, change := range map[string]func(s *local.SlotFile){
		`Type: type "q8_0"`: func(s *local.SlotFile) { s.Type = "q8_0" },
		"Parallel -1":       func(s *local.SlotFile) { s.Parallel = -1 },
		"Model":             func(s *local.SlotFile) { s.Model = dir },
		"Context":           func(s *local.SlotFile) { s.Context = other },
		"Out":               func(s *local.SlotFile) { s.Out = other },
	} {
		s := good
		change(&s)
		if _, err := local.WriteSlotFile(s); err == nil || !strings.HasPrefix(err.Error(), "slot file: "+want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
	if data, err := os.ReadFile(other); err != nil || string(data) != "something else" {
		t.Error("a file of another program was overwritten", err)
	}
}
