package localtest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/local/localtest"
)

func ExampleWriteModel() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "tiny.gguf")
	if err := localtest.WriteModel(file, 1); err != nil {
		fmt.Println(err)
		return
	}
	engine, err := local.Open(local.Config{Model: file, CacheBytes: 1 << 20})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()
	answer, err := engine.Generate(context.Background(), engines.Request{
		MaxTokens: 3, Messages: []engines.Message{{Role: engines.User, Content: "Hello"}},
	}, nil)
	fmt.Println(answer.Usage.OutputTokens <= 3, err)
	// Output: true <nil>
}
