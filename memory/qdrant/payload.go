package qdrant

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	api "github.com/qdrant/go-client/qdrant"

	"github.com/ragpilot/ragpilot/memory"
)

// Keys of payloads. A point that is no memory has a kind.
const (
	keyCommit = "commit"    // of the head: the last one
	keyTx     = "commit_of" // the commit that wrote it, until that is finished
	keyNumber = "number_of" // that commit's number

	keyKind  = "kind"
	keyID    = "id"
	keyScope = "scope" // all three fields of the scope, or kind and scope of a log
	keyUser  = "user_id"
	keyAgent = "agent_id"
	keyRun   = "run_id"

	keyHash    = "hash"
	keyText    = "text"
	keyNames   = "entities"
	keyCreated = "created"
	keyExpires = "expires"

	keyUnembedded = "unembedded" // the point's vector is only there because a point has to have one

	keyMemory = "memory"
	keyPlace  = "place" // orders rows of history and messages
)

// Kinds of points beside memories.
const (
	kindRevision = "revision"
	kindMessage  = "message"
)

// noVectors are the vectors of a point that has none.
func noVectors() *api.Vectors { return api.NewVectorsMap(map[string]*api.Vector{}) }

func stringList(in []string) *api.Value {
	values := make([]*api.Value, len(in))
	for i, s := range in {
		values[i] = api.NewValueString(s)
	}
	return api.NewValueFromList(values...)
}

func stringsOf(v *api.Value) []string {
	values := v.GetListValue().GetValues()
	if len(values) == 0 {
		return nil
	}
	out := make([]string, len(values))
	for i, s := range values {
		out[i] = s.GetStringValue()
	}
	return out
}

// scopeKey is a scope as one string, no two the same.
func scopeKey(s memory.Scope) string {
	return strconv.Itoa(len(s.User)) + ":" + s.User + strconv.Itoa(len(s.Agent)) + ":" + s.Agent + s.Run
}

// texts is a payload of strings; empty ones are left out, as filters cannot ask for them.
func texts(pairs ...string) map[string]*api.Value {
	out := make(map[string]*api.Value, len(pairs)/2+4)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out[pairs[i]] = api.NewValueString(pairs[i+1])
		}
	}
	return out
}

func scopeOf(payload map[string]*api.Value) memory.Scope {
	return memory.Scope{
		User: payload[keyUser].GetStringValue(), Agent: payload[keyAgent].GetStringValue(), Run: payload[keyRun].GetStringValue(),
	}
}

// setTime writes microseconds; a zero time is left out.
func setTime(payload map[string]*api.Value, key string, t time.Time) {
	if !t.IsZero() {
		payload[key] = api.NewValueInt(t.UnixMicro())
	}
}

func timeOf(payload map[string]*api.Value, key string) time.Time {
	v, ok := payload[key]
	if !ok {
		return time.Time{}
	}
	return time.UnixMicro(v.GetIntegerValue()).UTC()
}

// recordPayload returns what is stored of a memory beside its vector. Metadata is JSON, which keeps it exactly.
func recordPayload(r *memory.Record) (map[string]*api.Value, error) {
	m := &r.Memory
	out := texts(keyID, m.ID, keyText, m.Text, keyHash, m.Hash, "role", m.Role, "actor", m.Actor,
		keyScope, scopeKey(m.Scope), keyUser, m.Scope.User, keyAgent, m.Scope.Agent, keyRun, m.Scope.Run)
	if len(m.Metadata) > 0 {
		raw, err := json.Marshal(m.Metadata)
		if err != nil {
			return nil, fmt.Errorf("qdrant: metadata of %q: %w", m.ID, err)
		}
		out["metadata"] = api.NewValueString(string(raw))
	}
	setTime(out, keyCreated, m.CreatedAt)
	setTime(out, "updated", m.UpdatedAt)
	setTime(out, keyExpires, m.ExpiresAt)
	if len(r.Vector) == 0 {
		out[keyUnembedded] = api.NewValueBool(true)
	}
	if len(r.Entities) > 0 {
		out[keyNames] = stringList(r.Entities)
	}
	return out, nil
}

func memoryOf(payload map[string]*api.Value) (memory.Memory, error) {
	m := memory.Memory{
		ID: payload[keyID].GetStringValue(), Text: payload[keyText].GetStringValue(), Hash: payload[keyHash].GetStringValue(),
		Scope: scopeOf(payload), Role: payload["role"].GetStringValue(), Actor: payload["actor"].GetStringValue(),
		CreatedAt: timeOf(payload, keyCreated), UpdatedAt: timeOf(payload, "updated"), ExpiresAt: timeOf(payload, keyExpires),
	}
	if raw := payload["metadata"].GetStringValue(); raw != "" {
		if err := json.Unmarshal([]byte(raw), &m.Metadata); err != nil {
			return m, fmt.Errorf("qdrant: metadata of %q: %w", m.ID, err)
		}
	}
	return m, nil
}

func recordOf(p *api.RetrievedPoint) (r memory.Record, err error) {
	r.Vector, r.Entities = vectorOf(p), stringsOf(p.GetPayload()[keyNames])
	r.Memory, err = memoryOf(p.GetPayload())
	return r, err
}

// vectorOf reads the newer form of an answer first. It returns nil for a record without a vector.
func vectorOf(p *api.RetrievedPoint) []float32 {
	if p.GetPayload()[keyUnembedded].GetBoolValue() {
		return nil
	}
	v := p.GetVectors().GetVector()
	if dense := v.GetDense(); dense != nil {
		return dense.GetData()
	}
	return v.GetData() //nolint:staticcheck // what servers before 1.16 send
}

func revisionPayload(r *memory.Revision, place string) map[string]*api.Value {
	out := texts(keyKind, kindRevision, keyID, r.ID, keyMemory, r.MemoryID, "event", string(r.Event), "old", r.Old, "new", r.New,
		"role", r.Role, "actor", r.Actor, keyUser, r.Scope.User, keyAgent, r.Scope.Agent, keyRun, r.Scope.Run, keyPlace, place)
	setTime(out, "at", r.At)
	return out
}

func revisionOf(payload map[string]*api.Value) memory.Revision {
	text := func(key string) string { return payload[key].GetStringValue() }
	return memory.Revision{
		ID: text(keyID), MemoryID: text(keyMemory), Event: memory.Event(text("event")), Scope: scopeOf(payload),
		Old: text("old"), New: text("new"), Role: text("role"), Actor: text("actor"), At: timeOf(payload, "at"),
	}
}

func messagePayload(log memory.Log, m *memory.Message, place string) map[string]*api.Value {
	return texts(keyKind, kindMessage, keyScope, logKey(log), "log", log.Kind, "role", string(m.Role), keyText, m.Content,
		"name", m.Name, "extra", string(m.Extra), keyUser, log.Scope.User, keyAgent, log.Scope.Agent, keyRun, log.Scope.Run,
		keyPlace, place)
}

func messageOf(payload map[string]*api.Value) memory.Message {
	m := memory.Message{
		Role: memory.Role(payload["role"].GetStringValue()), Content: payload[keyText].GetStringValue(), Name: payload["name"].GetStringValue(),
	}
	if extra := payload["extra"].GetStringValue(); extra != "" {
		m.Extra = json.RawMessage(extra)
	}
	return m
}

func logKey(log memory.Log) string { return log.Kind + "/" + scopeKey(log.Scope) }
