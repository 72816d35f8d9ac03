package selfhosted

import (
	"encoding/json"
	"fmt"
)

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
