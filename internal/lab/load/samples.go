package load

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// ReadSamples reads a file of samples, one JSON object in each line.
func ReadSamples(path string) ([]Sample, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []Sample
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var s Sample
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, len(out)+1, err)
		}
		out = append(out, s)
	}
	return out, lines.Err()
}
