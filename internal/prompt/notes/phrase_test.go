package notes

import (
	"strings"
	"testing"
)

// FuzzMayBeIn: the quick look lets no text pass that has the phrase in one of the two readings.
func FuzzMayBeIn(f *testing.F) {
	for _, s := range []string{
		"Identical to", `iden\ntical\n\to`, `i\u0064entical to`, `iden\x74ical\u200bto`, "iｄentical to",
		"ident\u00adical to", `\\\u0069dentical\\n to`, "ic", "identi\\ncal to",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, plain := range []bool{false, true} {
			letters := strings.NewReplacer("[", "", ">", "").Replace(outline(text, plain))
			if strings.Contains(letters, core.letters) && !core.mayBeIn(text) {
				t.Errorf("%q was passed over", text)
			}
		}
	})
}
