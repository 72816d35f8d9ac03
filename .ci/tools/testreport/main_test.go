package main

import (
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
		{"long", strings.ReplaceAll(pass, `"TestA"`, `"TestA","Elapsed":12.34`), "", true, "long   12.3 s  p TestA\n"},
		{"not JSON", pass + "panic: no\n", "", false, "panic: no"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out strings.Builder
			got := report(strings.NewReader(tc.in), &out, tc.forbid)
			if got != tc.want || !strings.Contains(out.String(), tc.text) {
				t.Errorf("report = %v, want %v with %q in:\n%s", got, tc.want, tc.text, out.String())
			}
		})
	}
}
