package local_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if model := os.Getenv("LOCAL_KILLED_MODEL"); model != "" {
		answerForever(model, os.Getenv("LOCAL_KILLED_DIR"))
	}
	goleak.VerifyTestMain(m)
}
