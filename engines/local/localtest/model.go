package localtest

import "github.com/ragpilot/ragpilot/engines/local/internal/tinymodel"

// WriteModel writes a model of 0.4 MB as a GGUF file. All about it is real but what it says: its weights are random, by
// the seed, so that its answers are, too; the same seed gives the same file. It reads 1024 tokens. Texts have a token
// for about every byte. Errors are those of writing the file.
func WriteModel(path string, seed uint64) error {
	return tinymodel.Write(path, tinymodel.Options{Seed: seed, Context: 1024})
}
