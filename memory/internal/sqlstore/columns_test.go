package sqlstore

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/memory"
)

func TestVectorRoundTrip(t *testing.T) {
	var got vector // rows share its memory
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOf(rapid.Float32()).Draw(t, "vector")
		if err := got.Scan(EncodeVector(want)); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%v, %v; want %v", got, err, want)
		}
	})
	if err := got.Scan(nil); err != nil || len(got) != 0 {
		t.Errorf("NULL is %v, %v", got, err)
	}
	if got.Scan([]byte{1, 2, 3}) == nil {
		t.Error("three bytes are a vector")
	}
}

func TestMoment(t *testing.T) {
	want := time.Date(2026, 3, 4, 5, 6, 7, 8000, time.UTC)
	for _, src := range []any{want.UnixMicro(), want, want.In(time.FixedZone("x", 3600))} {
		var got time.Time
		if err := (moment{&got}).Scan(src); err != nil || got != want {
			t.Errorf("%v is read as %v, %v", src, got, err)
		}
	}
	got := want
	if err := (moment{&got}).Scan(nil); err != nil || !got.IsZero() {
		t.Errorf("NULL is read as %v, %v", got, err)
	}
	if (moment{&got}).Scan("today") == nil {
		t.Error("a text is a time")
	}
}

// values is a row.
type values []any

func (v values) Scan(to ...any) error {
	for i, dest := range to {
		switch dest := dest.(type) {
		case *string:
			*dest, _ = v[i].(string)
		case interface{ Scan(src any) error }:
			if err := dest.Scan(v[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// A damaged column is an error that names the memory.
func TestDamagedRow(t *testing.T) {
	whole := values{"m1", "ana", "", "", "hash", "text", "user", "", []byte(`{"a":1}`), int64(1), int64(2), nil}
	if m, err := readMemory(whole); err != nil || m.ID != "m1" || m.Metadata["a"] != 1.0 || !m.ExpiresAt.IsZero() {
		t.Fatalf("%+v, %v", m, err)
	}
	for column, damage := range map[int]any{8: `{"a":`, 9: "yesterday", 11: 1.5} {
		row := slices.Clone(whole)
		row[column] = damage
		if _, err := readMemory(row); err == nil || !strings.Contains(err.Error(), `memory "m1"`) {
			t.Errorf("column %d is %v: %v", column, damage, err)
		}
	}
	var m memory.Memory
	if err := scan(values{"", "", "", "", "", "", "", "", 3}, &m, places(&m)[:9]...); err == nil || strings.Contains(err.Error(), "memory") {
		t.Errorf("a row without an ID: %v", err)
	}
}
