package pdftext_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/retriever/bleve/internal/pdftext"
)

// simple builds a PDF with one page for each content stream.
func simple(contents ...string) []byte {
	var b bytes.Buffer
	var offsets []int
	object := func(text string) {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", len(offsets), text)
	}
	b.WriteString("%PDF-1.4\n")
	var kids []string
	for i := range contents {
		kids = append(kids, fmt.Sprintf("%d 0 R", 4+2*i))
	}
	object("<</Type/Catalog/Pages 2 0 R>>")
	object(fmt.Sprintf("<</Type/Pages/Count %d/Kids[%s]>>", len(contents), strings.Join(kids, " ")))
	object("<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>")
	for i, c := range contents {
		object(fmt.Sprintf("<</Type/Page/Parent 2 0 R/Contents %d 0 R/Resources<</Font<</F1 3 0 R>>>>>>", 5+2*i))
		object(fmt.Sprintf("<</Length %d>>stream\n%s\nendstream", len(c), c))
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, o := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(&b, "trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, start)
	return b.Bytes()
}

func TestPositionsBecomeText(t *testing.T) {
	got, err := pdftext.Pages(simple(
		"BT /F1 18 Tf 72 720 Td (Title) Tj /F1 12 Tf 0 -30 Td (One line) Tj 0 -14 Td [(and an)-20(other, of hyphen-)] TJ 0 -14 Td "+
			"(ated words.) Tj 0 -28 Td (Next.) Tj ET",
		"",
		"BT /F1 12 Tf 14 TL 72 720 Td (a) Tj (b) Tj 60 0 Td (c) Tj T* (\\351t\\351) Tj (below) ' ET q 2 0 0 2 0 0 cm BT (no\\000font) Tj ET Q",
	))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"Title\n\nOne line\nand another, of hyphenated words.\n\nNext.",
		"",
		"ab c\nété\nbelow\n\nnofont",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestPrinted reads what a browser printed: fonts of two bytes a glyph, kerning, compressed streams.
func TestPrinted(t *testing.T) {
	raw, err := os.ReadFile("testdata/chromium.pdf")
	if err != nil {
		t.Fatal(err)
	}
	got, err := pdftext.Pages(raw)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`Harbour handbook

The harbour master assigns a berth to every ship. Ships that carry grain are unloaded at
the northern quay, where the elevators stand; all others wait in the basin until a crane is
free.

Naïve café owners call it “the quay”.

Tides

The gate opens two hours before high water.

Spring tide 4.2 m
Neap tide 2.9 m`, `Fees

A berth costs nine crowns a day.`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDamaged(t *testing.T) {
	good := string(simple("BT /F1 12 Tf (text) Tj ET"))
	for name, raw := range map[string]string{
		"empty":              "",
		"not a PDF":          "plain text",
		"cut off":            good[:len(good)/2],
		"no end":             strings.TrimSuffix(good, "%%EOF\n"),
		"wrong offsets":      strings.Replace(good, "%PDF-1.4\n", "%PDF-1.4\n%%%%%%\n", 1),
		"huge table":         strings.Replace(good, "/Size 6", "/Size 99999999999999", 1),
		"huge object number": strings.Replace(good, "xref\n0 6", "xref\n999999999999 6", 1),
		"previous in circle": strings.Replace(good, "/Root", fmt.Sprintf("/Prev %d/Root", strings.Index(good, "xref\n0")), 1),
		"pages in circle":    strings.Replace(good, "/Kids[4 0 R]", "/Kids[2 0 R]", 1),
		"nested too deep":    string(simple(strings.Repeat("[", 1_000_000))),
		"deep trailer":       strings.Replace(good, "/Root", "/A"+strings.Repeat("[", 1_000_000)+"/Root", 1),
		"unknown filter":     strings.Replace(good, "<</Length", "<</Filter/Nonsense/Length", 1),
		"too many pages":     strings.Replace(good, "/Kids[4 0 R]", "/Kids["+strings.Repeat("4 0 R ", 30_000)+"]", 1),
	} {
		pages, err := pdftext.Pages([]byte(raw))
		if !errors.Is(err, pdftext.ErrBad) || pages != nil {
			t.Errorf("%s: %q, %v; want ErrBad alone", name, pages, err)
		}
	}
	if pages, err := pdftext.Pages(simple("")); !errors.Is(err, pdftext.ErrNoText) || pages != nil {
		t.Errorf("no text: %q, %v; want ErrNoText alone", pages, err)
	}
}

func FuzzPages(f *testing.F) {
	printed, err := os.ReadFile("testdata/chromium.pdf")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(printed)
	f.Add(simple("BT /F1 12 Tf 72 720 Td [(a)-500(b)] TJ (c) ' 1 2 (d) \" T* ET"))
	f.Add(simple("q Q Q 1 0 0 1 cm BT Tf Tj TJ ' ET", "<< /A [1 2 << >>] >> begin def end pop dict currentdict"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		pages, err := pdftext.Pages(raw)
		if err != nil && !errors.Is(err, pdftext.ErrBad) && !errors.Is(err, pdftext.ErrNoText) {
			t.Errorf("error %v of no known kind", err)
		}
		for _, p := range pages {
			if !utf8.ValidString(p) || strings.ContainsRune(p, 0) {
				t.Errorf("page %q is no text", p)
			}
		}
	})
}
