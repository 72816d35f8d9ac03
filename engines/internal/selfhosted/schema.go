package selfhosted

import (
	"encoding/json"
	"fmt"
)

// Schema is what a server says of its own API (GET /openapi.json of FastAPI servers): which paths it serves, and which
// members the bodies of requests have. The zero value says nothing.
type Schema struct {
	paths   map[string]bool
	members map[string]map[string]bool // of each named type
}

// ParseSchema reads an OpenAPI document.
func ParseSchema(data []byte) (Schema, error) {
	var doc struct {
		Paths      map[string]json.RawMessage `json:"paths"`
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return Schema{}, fmt.Errorf("openapi document: %w", err)
	}
	s := Schema{paths: map[string]bool{}, members: map[string]map[string]bool{}}
	for path := range doc.Paths {
		s.paths[path] = true
	}
	for name, raw := range doc.Components.Schemas {
		var kind struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		if json.Unmarshal(raw, &kind) != nil || kind.Properties == nil {
			continue // a type of another form
		}
		members := map[string]bool{}
		for member := range kind.Properties {
			members[member] = true
		}
		s.members[name] = members
	}
	return s, nil
}

// Path reports whether the server serves a path.
func (s Schema) Path(path string) Support {
	switch {
	case len(s.paths) == 0:
		return Support{}
	case s.paths[path]:
		return Yes("the server's schema has " + path)
	}
	return No("the server's schema has no " + path)
}

// Member reports whether a type of body has a member.
func (s Schema) Member(kind, member string) Support {
	members, ok := s.members[kind]
	switch {
	case !ok:
		return Support{}
	case members[member]:
		return Yes("the server's schema of " + kind + " has " + member)
	}
	return No("the server's schema of " + kind + " has no " + member)
}

// Models are the answer of /v1/models.
type Models struct {
	IDs    []string
	Window int // tokens of prompt and answer of the first model that says it; 0: not known
	// Adapters are those of IDs that are adapters (LoRA) of another model.
	Adapters []string
}

// ParseModels reads an answer of /v1/models.
func ParseModels(data []byte) (Models, error) {
	var list struct {
		Data []struct {
			ID     string `json:"id"`
			Parent string `json:"parent"`
			Window int    `json:"max_model_len"`
		} `json:"data"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return Models{}, fmt.Errorf("answer of /v1/models: %w", err)
	}
	var m Models
	for _, model := range list.Data {
		m.IDs = append(m.IDs, model.ID)
		if model.Parent != "" {
			m.Adapters = append(m.Adapters, model.ID)
		}
		if m.Window == 0 {
			m.Window = max(model.Window, 0)
		}
	}
	return m, nil
}
