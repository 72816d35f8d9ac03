package bleve

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
)

// file is what the index knows of a file that it holds.
type file struct {
	Hash     string `json:"hash"` // of its bytes
	Blocks   int    `json:"blocks"`
	Words    int    `json:"words"`
	Analyzer string `json:"analyzer"`
}

// hash returns the hash by which a change of a file is seen.
func hash(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16])
}

// buckets is the number of records among which the files are spread: a change of one file writes its bucket only.
const buckets = 256

// manifest is the list of indexed files, by path. It is stored in the index beside the blocks, in the same batches, so
// that the two never disagree.
type manifest map[string]file

func bucketOf(name string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return int(h.Sum32() % buckets)
}

func bucketKey(bucket int) string { return fmt.Sprintf("files:%02x", bucket) }

// readManifest reads what record wrote.
func (c *core) readManifest() (manifest, error) {
	m := manifest{}
	for b := range buckets {
		raw, err := c.index.GetInternal([]byte(bucketKey(b)))
		if err != nil {
			return nil, err
		}
		if raw == nil {
			continue
		}
		var files manifest
		if err := json.Unmarshal(raw, &files); err != nil {
			return nil, fmt.Errorf("%w: list of files: %w", ErrCorrupt, err)
		}
		maps.Copy(m, files)
	}
	return m, nil
}

// record returns the records of the buckets of these files, as they are now in m.
func (m manifest) record(changed []string) (map[string][]byte, error) {
	dirty := map[int]manifest{}
	for _, name := range changed {
		dirty[bucketOf(name)] = manifest{}
	}
	for name, f := range m {
		if files, ok := dirty[bucketOf(name)]; ok {
			files[name] = f
		}
	}
	out := make(map[string][]byte, len(dirty))
	for b, files := range dirty {
		raw, err := json.Marshal(files)
		if err != nil {
			return nil, err
		}
		out[bucketKey(b)] = raw
	}
	return out, nil
}

// gone returns the files of m that are not among names, in lexical order. names must be sorted.
func (m manifest) gone(names []string) []string {
	var out []string
	for name := range m {
		if _, there := slices.BinarySearch(names, name); !there {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// blocks returns the number of blocks of all files.
func (m manifest) blocks() int {
	n := 0
	for _, f := range m {
		n += f.Blocks
	}
	return n
}
