package docs_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestReuseContracts: the code of testing-reuse.md is that of tests, which are run, and its failure is that of an example's test. A contract
// has at most ten lines.
func TestReuseContracts(t *testing.T) {
	page, err := os.ReadFile("testing-reuse.md")
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile("../ragpilottest/contract_test.go")
	if err != nil {
		t.Fatal(err)
	}
	failure, err := os.ReadFile("../examples/multiturn/testdata/clock.txt")
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(code) != 3 {
		t.Errorf("%d contracts, want 3", len(code))
	}
	for _, m := range code {
		if !strings.Contains(string(tests), "\n"+m[1]) {
			t.Errorf("contract_test.go has other code than\n%s", m[1])
		}
		if n := strings.Count(m[1], "\n"); n > 10 {
			t.Errorf("%d lines, want at most 10:\n%s", n, m[1])
		}
	}
	if !strings.Contains(string(page), "\n```\n"+string(failure)+"```\n") {
		t.Errorf("the page shows another failure than\n%s", failure)
	}
}
