package volatile_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ragpilot/ragpilot/internal/prompt/volatile"
)

var kinds = map[volatile.Kind]string{volatile.Clock: "clock", volatile.ID: "id", volatile.Number: "number", volatile.Address: "address"}

func show(text string) string {
	var out []string
	for _, s := range volatile.Find(text) {
		out = append(out, fmt.Sprintf("%s(%s)", kinds[s.Kind], text[s.From:s.To]))
	}
	return strings.Join(out, " ")
}

func TestFind(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"Current time: 2026-11-27T04:14:05Z.", "clock(2026-11-27T04:14:05Z)"},
		{"at 2026-11-27T04:14:05.123456+01:00, ok", "clock(2026-11-27T04:14:05.123456+01:00)"},
		{"now 2026-11-27 04:14:05.1 +0000 UTC m=+0.001 end", "clock(2026-11-27 04:14:05.1 +0000 UTC)"},
		{"Today is Friday, November 27, 2026.", "clock(Friday, November 27, 2026)"},
		{"It is Friday, 27 November 2026 at 4:14 PM here", "clock(Friday, 27 November 2026 at 4:14 PM)"},
		{"Fri, 27 Nov 2026 04:14:05 GMT", "clock(Fri, 27 Nov 2026 04:14:05 GMT)"},
		{"Fri Nov 27 04:14:05 UTC 2026", "clock(Fri Nov 27 04:14:05 UTC 2026)"},
		{"heute, 27.11.2026 16:14 Uhr", "clock(27.11.2026 16:14 Uhr)"},
		{"am Freitag, den 27. November 2026", "clock(Freitag, den 27. November 2026)"},
		{"date 11/27/2026, 4:14pm", "clock(11/27/2026, 4:14pm)"},
		{"ts=1795752845", "clock(1795752845)"},
		{"ms 1795752845123", "clock(1795752845123)"},
		{"现在是2026年11月27日16时14分。", "clock(2026年11月27日16时14分)"},
		{"Nous sommes le vendredi 27 novembre 2026, 16 h 05.", "clock(vendredi 27 novembre 2026, 16 h 05)"},
		{"Сегодня Пятница, 27 ноября 2026 г.", "clock(Пятница, 27 ноября 2026)"},
		{"at 20261127T041405Z or 20261127-041405", "clock(20261127T041405Z) clock(20261127-041405)"},
		{"Kalenderwoche 2026-W48", "clock(2026-W48)"},
		{"Ticket #A93-XK2 and 1861730284710412288", "id(A93-XK2) id(1861730284710412288)"},
		{"November 27th, 2026", "clock(November 27th, 2026)"},
		{"Today is Friday", "clock(Friday)"},
		{"you may march on; the sun is up, it sat there", ""},
		{"In May 2026 it rained", "clock(May 2026)"},
		{"id 550e8400-e29b-41d4-a716-446655440000!", "id(550e8400-e29b-41d4-a716-446655440000)"},
		{"trace 4bf92f3577b34da6a3ce929d0e0e4736", "id(4bf92f3577b34da6a3ce929d0e0e4736)"},
		{"commit 8f14e45f", "id(8f14e45f)"},
		{"ulid 01ARZ3NDEKTSV4RRFFQ69G5FAV", "id(01ARZ3NDEKTSV4RRFFQ69G5FAV)"},
		{"call_x7Kp2mQ9 toolu_01A09q90qw90lq917835lq9", "id(call_x7Kp2mQ9) id(toolu_01A09q90qw90lq917835lq9)"},
		{"jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI0MiJ9.qFv3 and m-7fk2q9", "id(eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI0MiJ9.qFv3) id(m-7fk2q9)"},
		{"in /tmp/run-560b153eda/workspace [msg 270188ad-3979-4084]", "id(run-560b153eda) id(270188ad-3979-4084)"},
		{"nano V1StGXR8_Z5jdHi6B-myT", "id(V1StGXR8_Z5jdHi6B-myT)"},
		{"request 5 of 12, step 3/10", "number(5) number(12) number(3) number(10)"},
		{"user jane.doe@example.com or @jane", "address(jane.doe@example.com) address(@jane)"},
		{"get_weather for GPT-4o in utf-8, sha256, base64 and H100; see section2", ""},
		{"OpenAI, JavaScript, RFC, internationalization, deadbeef, a11y, i18n", ""},
		{"price 12.99 and version 1.2.3", ""},
	} {
		if got := show(c.text); got != c.want {
			t.Errorf("%q: %s, want %s", c.text, got, c.want)
		}
	}
}

func FuzzFind(f *testing.F) {
	f.Add("Friday, November 27, 2026 4:14 PM 2026年11月27日 a@b.c 550e8400-e29b-41d4-a716-446655440000")
	f.Add("1:")
	f.Add("12-Nov-")
	f.Fuzz(func(t *testing.T, text string) {
		last := 0
		for _, s := range volatile.Find(text) {
			if s.From < last || s.To <= s.From || s.To > len(text) || s.Kind == 0 {
				t.Fatalf("%q: %+v behind %d", text, s, last)
			}
			if utf8.ValidString(text) && !utf8.ValidString(text[s.From:s.To]) {
				t.Fatalf("%q: %+v cuts a character", text, s)
			}
			last = s.To
		}
	})
}

func BenchmarkFind(b *testing.B) {
	text := strings.Repeat("The order 8841 of Friday, November 27, 2026 was sent to jane@example.com with words that say nothing. ", 300)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		volatile.Find(text)
	}
}
