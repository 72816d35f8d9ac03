package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// at returns the bytes of the value at a path such as messages[0].content, and nil if there is none.
func at(body []byte, path string) (json.RawMessage, error) {
	value := json.RawMessage(body)
	for step := range strings.SplitSeq(strings.ReplaceAll(path, "[", ".["), ".") {
		if value == nil {
			return nil, nil
		}
		index, isIndex := strings.CutPrefix(step, "[")
		if !isIndex {
			var m map[string]json.RawMessage
			if err := json.Unmarshal(value, &m); err != nil {
				return nil, fmt.Errorf("%s of %s: %w", step, path, err)
			}
			value = m[step]
			continue
		}
		n, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
		if err != nil {
			return nil, err
		}
		var list []json.RawMessage
		if err := json.Unmarshal(value, &list); err != nil {
			return nil, fmt.Errorf("%s of %s: %w", step, path, err)
		}
		value = nil
		if n < len(list) {
			value = list[n]
		}
	}
	return value, nil
}

// parent cuts the last step off a path.
func parent(path string) string { return path[:max(strings.LastIndexAny(path, ".["), 0)] }

// before says whether the items of a list in front of the path's are the same in both.
func before(a, b []byte, path string) (bool, error) {
	if !strings.HasSuffix(path, "]") {
		return true, nil
	}
	n, err := strconv.Atoi(path[strings.LastIndex(path, "[")+1 : len(path)-1])
	for i := range n {
		item := fmt.Sprintf("%s[%d]", parent(path), i)
		x, errA := at(a, item)
		y, errB := at(b, item)
		if err := errors.Join(errA, errB); err != nil || x == nil || !bytes.Equal(x, y) {
			return false, err
		}
	}
	return true, err
}
