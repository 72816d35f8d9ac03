package main

import (
	"io"
	"maps"
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	const pass = `{"Action":"pass","Package":"p","Test":"TestA"}` + "\n"
	const skip = `{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:7: needs ../shared/x\n"}` + "\n" +
		`{"Action":"skip","Package":"p","Test":"TestB"}` + "\n"
	for _, tc := range []struct {
		name, in, forbid string
		want             bool
		text             string
	}{
		{"pass", pass, "", true, "1 passed, 0 failed, 0 skipped"},
		{"nothing ran", "", "", false, "0 passed"},
		{"failure", pass + `{"Action":"output","Package":"p","Test":"TestC","Output":"boom\n"}` + "\n" + `{"Action":"fail","Package":"p","Test":"TestC"}`, "", false, "boom"},
		{"build failure", pass + `{"Action":"build-output","ImportPath":"p","Output":"undefined: x\n"}` + "\n" + `{"Action":"build-fail","ImportPath":"p"}`, "", false, "undefined: x"},
		{"skip is named", pass + skip, "", true, "skip p TestB: b_test.go:7: needs ../shared/x"},
		{"part is not run", pass + strings.ReplaceAll(skip, "needs ../shared/x", "not run: no disk"), "", true, "\nnot run: p TestB (no disk)\n"},
		{"skip is forbidden", pass + skip, "../shared", false, "must not be skipped"},
		{"not JSON", pass + "panic: no\n", "", false, "panic: no"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out strings.Builder
			got := report(strings.NewReader(tc.in), &out, tc.forbid, "", nil)
			if got != tc.want || !strings.Contains(out.String(), tc.text) {
				t.Errorf("report = %v, want %v with %q in:\n%s", got, tc.want, tc.text, out.String())
			}
		})
	}
}

// TestAgain: tests that were skipped for one reason are listed by their top names, others are not.
func TestAgain(t *testing.T) {
	in := ""
	for _, name := range []string{"TestA/x", "TestA/y", "TestB", "TestC"} {
		reason := "slow"
		if name == "TestC" {
			reason = "no model"
		}
		in += `{"Action":"output","Package":"p","Test":"` + name + `","Output":"    a_test.go:7: ` + reason + `\n"}` + "\n" + `{"Action":"skip","Package":"p","Test":"` + name + `"}` + "\n"
	}
	later := map[string]bool{}
	report(strings.NewReader(in), io.Discard, "", "slow", later)
	if want := map[string]bool{"p TestA": true, "p TestB": true}; !maps.Equal(later, want) {
		t.Errorf("%v, want %v", later, want)
	}
}
