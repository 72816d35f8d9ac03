package elastic_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/testkit"
)

// TestOfficialClientIsNotCompiled: nothing that is built or tested without the tag "stores" imports the official client, which
// has 864 packages.
func TestOfficialClientIsNotCompiled(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-tags=", "-deps", "-test", "./...")
	list.Dir = testkit.Root(t)
	out, err := list.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", list, err, out)
	}
	for name := range strings.Lines(string(out)) {
		if strings.Contains(name, "go-elasticsearch") {
			t.Errorf("%v lists %s", list, name)
		}
	}
}
