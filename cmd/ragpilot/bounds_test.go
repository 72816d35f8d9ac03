package main

import (
	"strings"
	"testing"
)

func TestBounds(t *testing.T) {
	blocks, trc := write(t, "b.jsonl", someBlocks), write(t, "t.jsonl", someTrace)
	// Each block counts 9 tokens: <doc a>, alpha, </doc>. Of 7, the second request can save a and b, the third a.
	tests := []struct {
		name, args, want, notes string
	}{
		{"text", "", `requests         3, of which 2 can share a prefix
document tokens  63
session repeats  0.1429
online           0.4286
spread           0.4286
offline          0.4286
groups           0.4286
any              0.4286
`, ""},
		{"json", "--json", `{"requests":3,"first_turns":2,"doc_tokens":63,"session_repeats":0.14285714285714285,"online":0.42857142857142855,` +
			`"spread":0.42857142857142855,"offline":0.42857142857142855,"groups":0.42857142857142855,"any":0.42857142857142855}` + "\n", ""},
		{
			"first document", "--k 1 --json",
			`{"requests":3,"first_turns":2,"doc_tokens":27,"session_repeats":0,"online":0,"spread":0,"offline":0,"groups":0,"any":0}` + "\n", "",
		},
		{
			"without history", "--history none --groups-limit 2 --json",
			`{"requests":3,"first_turns":3,"doc_tokens":63,"session_repeats":0,"online":0.5714285714285714,"spread":0.42857142857142855,` +
				`"offline":0.5714285714285714,"groups":null,"any":0.42857142857142855}` + "\n",
			"groups left out: 3 requests can share a prefix, more than --groups-limit 2\n",
		},
		{
			"limits", "--offline-limit 1 --groups-limit 0", `requests         3, of which 2 can share a prefix
document tokens  63
session repeats  0.1429
online           0.4286
spread           left out
offline          left out
groups           left out
any              0.4286
`, "spread left out: 2 requests can share a prefix, more than --offline-limit 1\noffline left out: 2 requests can share a prefix, more than --offline-limit 1\ngroups left out: 2 requests can share a prefix, more than --groups-limit 0\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, notes, err := runErr(t, append([]string{"bounds", "--trace", trc, "--blocks", blocks}, strings.Fields(tt.args)...)...)
			if err != nil || out != tt.want || notes != tt.notes {
				t.Errorf("got\n%swant\n%snotes %q, want %q (%v)", out, tt.want, notes, tt.notes, err)
			}
		})
	}
}

func TestBoundsBadInput(t *testing.T) {
	blocks, trc := write(t, "b.jsonl", someBlocks), write(t, "t.jsonl", someTrace)
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"no trace", []string{"--blocks", blocks}, "--trace"},
		{"no blocks", []string{"--trace", trc}, "--blocks"},
		{"one input", []string{"--trace", "-", "--blocks", "-"}, "standard input"},
		{"missing", []string{"--trace", trc + "x", "--blocks", blocks}, trc + "x"},
		{"missing blocks", []string{"--trace", trc, "--blocks", blocks + "x"}, blocks + "x"},
		{
			"unknown block",
			[]string{"--trace", write(t, "t.jsonl", `{"id":"1","query":"?","docs":["z"]}`), "--blocks", blocks},
			`t.jsonl:1: request "1": names unknown block "z"`,
		},
		{"history", []string{"--trace", trc, "--blocks", blocks, "--history", "half"}, `--history "half"`},
		{"k", []string{"--trace", trc, "--blocks", blocks, "--k", "-1"}, "--k -1"},
		{"limit", []string{"--trace", trc, "--blocks", blocks, "--groups-limit", "-1"}, "--groups-limit -1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, err := run(t, append([]string{"bounds"}, tt.args...)...)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %s; printed %q", err, tt.want, out)
			}
		})
	}
}
