package tinymodel_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/ragpilot/ragpilot/engines/local/internal/tinymodel"
	"github.com/ragpilot/ragpilot/internal/nn/quant"
)

func write(t *testing.T, o tinymodel.Options) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := tinymodel.Write(path, o); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestSameOptionsSameFile(t *testing.T) {
	o := tinymodel.Options{Type: quant.Q8_0, Seed: 7}
	if !bytes.Equal(write(t, o), write(t, o)) {
		t.Error("the same options give two files")
	}
	if bytes.Equal(write(t, o), write(t, tinymodel.Options{Type: quant.Q8_0, Seed: 8})) {
		t.Error("two seeds give the same file")
	}
}

func TestShapesThatCannotBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	for name, o := range map[string]tinymodel.Options{
		"part of a block":       {Type: quant.Q4_0, Hidden: 48},
		"part of a large block": {Type: quant.Q6_K, Hidden: 64},
		"part of one's block":   {Types: map[string]quant.Type{"blk.1.ffn_down.weight": quant.Q4_K}},
	} {
		if err := tinymodel.Write(path, o); err == nil {
			t.Errorf("%s: written", name)
		}
	}
}
