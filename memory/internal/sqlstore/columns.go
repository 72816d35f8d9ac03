package sqlstore

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/ragpilot/ragpilot/memory"
)

// EncodeVector returns the bytes of a vector: float32, little endian, one after the other.
func EncodeVector(v []float32) []byte {
	raw := make([]byte, 0, 4*len(v))
	for _, x := range v {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	return raw
}

// vector reads what EncodeVector wrote. The rows of a result share its memory.
type vector []float32

// Scan implements sql.Scanner.
func (v *vector) Scan(src any) error {
	raw, _ := src.([]byte) // a database may give an empty value as NULL
	if len(raw)%4 != 0 {
		return fmt.Errorf("a vector of %d bytes", len(raw))
	}
	*v = (*v)[:0]
	for i := 0; i < len(raw); i += 4 {
		*v = append(*v, math.Float32frombits(binary.LittleEndian.Uint32(raw[i:])))
	}
	return nil
}

// moment reads a time, or microseconds since 1970; NULL is the zero time.
type moment struct{ to *time.Time }

// Scan implements sql.Scanner.
func (m moment) Scan(src any) error {
	switch at := src.(type) {
	case nil:
		*m.to = time.Time{}
	case int64:
		*m.to = time.UnixMicro(at).UTC()
	case time.Time:
		*m.to = at.UTC()
	default:
		return fmt.Errorf("a time of type %T", src)
	}
	return nil
}

// object reads JSON; NULL is nil.
type object struct{ to *map[string]any }

// Scan implements sql.Scanner.
func (o object) Scan(src any) error {
	switch raw := src.(type) {
	case nil:
		return nil
	case string:
		return json.Unmarshal([]byte(raw), o.to)
	case []byte:
		return json.Unmarshal(raw, o.to)
	}
	return fmt.Errorf("metadata of type %T", src)
}

// places returns where memoryColumns are read into.
func places(m *memory.Memory) []any {
	return []any{
		&m.ID, &m.Scope.User, &m.Scope.Agent, &m.Scope.Run, &m.Hash, &m.Text, &m.Role, &m.Actor,
		object{&m.Metadata},
		moment{&m.CreatedAt},
		moment{&m.UpdatedAt},
		moment{&m.ExpiresAt},
	}
}

// scan reads a row that begins with a memory's ID, which is named in an error about a later column.
func scan(row Row, m *memory.Memory, to ...any) error {
	err := row.Scan(to...)
	if err != nil && m.ID != "" {
		return fmt.Errorf("memory %q: %w", m.ID, err)
	}
	return err
}

// readMemory reads memoryColumns.
func readMemory(row Row) (m memory.Memory, err error) {
	err = scan(row, &m, places(&m)...)
	return m, err
}

// readRevision reads revisionColumns.
func readRevision(row Row) (r memory.Revision, err error) {
	err = row.Scan(&r.ID, &r.MemoryID, (*string)(&r.Event), &r.Scope.User, &r.Scope.Agent, &r.Scope.Run,
		&r.Old, &r.New, &r.Role, &r.Actor, moment{&r.At})
	return r, err
}
