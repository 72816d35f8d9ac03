package batch

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// readBlocks reads the cell of a column of blocks. One that is empty or white space has none; one that begins with [ is a JSON list;
// any other is one block, with its white space.
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
		return nil, fmt.Errorf("the cell %q begins with [ and is no JSON list (%w); a block that begins so is written as a list of one text",
			shorten(trimmed), err)
	}
	blocks := make([]contextpilot.Block, len(list))
	for i, raw := range list {
		var err error
		if blocks[i], err = readBlock(raw); err != nil {
			return nil, fmt.Errorf("block %d %q: %w", i+1, shorten(string(raw)), err)
		}
	}
	return blocks, nil
}

// readBlock reads a text, or an object with the first of the members "text", "content" and "page_content" that is not null.
func readBlock(raw json.RawMessage) (b contextpilot.Block, err error) {
	if raw[0] == '"' {
		err = json.Unmarshal(raw, &b.Text)
		return b, err
	}
	var members map[string]json.RawMessage
	if raw[0] != '{' {
		return b, errors.New("want a text or an object")
	}
	if err := json.Unmarshal(raw, &members); err != nil {
		return b, err
	}
	for _, name := range []string{"text", "content", "page_content"} {
		value, ok := members[name]
		switch {
		case !ok || string(value) == "null":
			continue
		case value[0] != '"':
			return b, fmt.Errorf("%q is %s, want a text", name, shorten(string(value)))
		}
		if err := json.Unmarshal(value, &b.Text); err != nil {
			return b, err
		}
		b.ID, err = blockID(members["id"])
		return b, err
	}
	return b, errors.New(`it has no "text", "content" or "page_content"`)
}

// blockID reads the ID of a block: a text, or a number as it stands.
func blockID(raw json.RawMessage) (id string, err error) {
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return "", nil
	case raw[0] == '"':
		err = json.Unmarshal(raw, &id)
		return id, err
	case raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9':
		return string(raw), nil
	}
	return "", fmt.Errorf(`"id" is %s, want a text or a number`, shorten(string(raw)))
}
