package slotnote_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/ragpilot/ragpilot/engines/internal/slotnote"
)

// A note comes back as it was written, and any other byte in it is found.
func TestNote(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.slot")
	if err := os.WriteFile(file, []byte("slot"), 0o600); err != nil {
		t.Fatal(err)
	}
	size, sum, err := slotnote.Sum(file)
	if err != nil || size != 4 {
		t.Fatal(size, err)
	}
	want := slotnote.Note{Model: "m", Parallel: 2, Type: "f16", Bytes: size, Sum: sum, Tokens: []int32{5, 6}, Rest: []int32{7}}
	if err := slotnote.Write(file, want); err != nil {
		t.Fatal(err)
	}
	got, err := slotnote.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	want.Format, want.Check = slotnote.Format, got.Check
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if err := got.Whole(file); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"slut", "slo", ""} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := got.Whole(file); !errors.Is(err, slotnote.ErrDamaged) {
			t.Errorf("%q: error %v", text, err)
		}
	}
	data, err := os.ReadFile(file + slotnote.Ending)
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(data) - 1 { // the last byte ends the line
		bad := append([]byte{}, data...)
		bad[i] ^= 1
		if err := os.WriteFile(file+slotnote.Ending, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if n, err := slotnote.Read(file); err == nil && !reflect.DeepEqual(n, got) {
			t.Errorf("byte %d: %+v", i, n)
		}
	}
}
