package testkit

import (
	"os"
	"testing"
)

// Llama returns the llama-server and the model that the environment names. Without them the test is skipped.
func Llama(t testing.TB) (program, model string) {
	t.Helper()
	program, model = os.Getenv("RAGPILOT_LLAMA_SERVER"), os.Getenv("RAGPILOT_LLAMA_MODEL")
	if program == "" || model == "" {
		t.Skip("needs a llama-server: RAGPILOT_LLAMA_SERVER and RAGPILOT_LLAMA_MODEL name the program and a GGUF file")
	}
	return program, model
}
