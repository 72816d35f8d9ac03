package batch

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// readBlocks reads the cell of a column of blocks; an empty one has none.
func readBlocks(cell string) ([]contextpilot.Block, error) {
	trimmed := strings.TrimSpace(cell)
	if trimmed == "" {
		return nil, nil
	}
	if trimmed[0] != '[' {
		return []contextpilot.Block{{Text: cell}}, nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal([]byte(trimmed), &list); err != nil {
		return nil, fmt.Errorf("blocks %q: %w", shorten(trimmed), err)
	}
	blocks := make([]contextpilot.Block, len(list))
	for i, raw := range list {
		if err := json.Unmarshal(raw, &blocks[i].Text); err == nil && raw[0] == '"' {
			continue
		}
		var o struct {
			ID            json.RawMessage
			Text, Content *string
			PageContent   *string `json:"page_content"`
		}
		if err := json.Unmarshal(raw, &o); err != nil {
			return nil, fmt.Errorf("block %d %q: want a text or an object: %w", i+1, shorten(string(raw)), err)
		}
		text := o.Text
		for _, other := range []*string{o.Content, o.PageContent} {
			if text == nil {
				text = other
			}
		}
		if text == nil {
			return nil, fmt.Errorf(`block %d %q: it has no "text", "content" or "page_content"`, i+1, shorten(string(raw)))
		}
		blocks[i].Text = *text
		if len(o.ID) > 0 && string(o.ID) != "null" {
			blocks[i].ID = strings.Trim(string(o.ID), `"`)
		}
	}
	return blocks, nil
}
