package mem0

import (
	"bytes"
	"encoding/json"
)

// results are memories in an object's member "results", or as a bare list.
type results []remembered

// UnmarshalJSON implements json.Unmarshaler.
func (r *results) UnmarshalJSON(raw []byte) error {
	var list []remembered
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		var in struct {
			Results []remembered `json:"results"`
		}
		err := json.Unmarshal(raw, &in)
		*r = in.Results
		return err
	}
	err := json.Unmarshal(raw, &list)
	*r = list
	return err
}
