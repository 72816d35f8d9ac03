package diagnosis_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar/diagnosis"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
)

// texts collects all strings and bytes that can be reached from a value.
type texts struct {
	seen map[uintptr]bool
	all  strings.Builder
}

func (x *texts) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		x.all.WriteString(v.String() + "\n")
	case reflect.Pointer:
		if !v.IsNil() && !x.seen[v.Pointer()] {
			x.seen[v.Pointer()] = true
			x.walk(v.Elem())
		}
	case reflect.Interface:
		if !v.IsNil() {
			x.walk(v.Elem())
		}
	case reflect.Struct:
		if v.Type().PkgPath() == "log/slog" || strings.Contains(v.Type().PkgPath(), "prometheus") {
			return
		}
		for _, field := range v.Fields() {
			x.walk(field)
		}
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
			x.all.Write(v.Bytes())
			return
		}
		for i := range v.Len() {
			x.walk(v.Index(i))
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			x.walk(it.Key())
			x.walk(it.Value())
		}
	}
}

// TestKeepsNoTexts: once an answer has ended, no text of its prompt is in memory, unless texts are kept; then it is shown around the
// difference.
func TestKeepsNoTexts(t *testing.T) {
	for _, keep := range []bool{false, true} {
		m := newMisses(t, diagnosis.Options{KeepTexts: keep})
		for minute := range 3 {
			p := m.Sent(proxy.SentPrompt{Tenant: "red", Body: body(minute, "Who wrote it?"), Sent: time.Now()})
			if minute == 2 {
				p.Miss()
			}
			p.Ended(answered)
			m.Wait()
		}
		m.Forget("red", "nothing")
		pass(m, "red", body(3, "Who wrote it?"), nil)
		pass(m, "red", body(4, "Who wrote it?"), nil)
		m.Wait()
		x := texts{seen: map[uintptr]bool{}}
		x.walk(reflect.ValueOf(m))
		if got := strings.Contains(x.all.String(), "page that you have"); got != keep {
			t.Errorf("texts kept: %v, and in memory: %v", keep, got)
		}
		last := m.Data().Last[0]
		if strings.Contains(last.Is, "00:04") != keep || strings.Contains(last.Was, "00:03") != keep {
			t.Errorf("texts kept: %v: %q, %q", keep, last.Was, last.Is)
		}
		m.Forget("red", "")
		x = texts{seen: map[uintptr]bool{}}
		x.walk(reflect.ValueOf(m))
		if strings.Contains(x.all.String(), "2026") || strings.Contains(x.all.String(), "page that you have") {
			t.Error("it is not forgotten")
		}
	}
}

// TestSaltIsNotShown: what keeps caches apart is a secret, also where texts are kept.
func TestSaltIsNotShown(t *testing.T) {
	m := newMisses(t, diagnosis.Options{KeepTexts: true})
	for _, salt := range []string{"one-secret", "two-secret"} {
		pass(m, "", []byte(strings.Replace(string(body(1, "q")), "{", `{"cache_salt":"`+salt+`",`, 1)), nil)
	}
	m.Wait()
	if d := m.Data(); causesOf(d) != "ragpilot salt" || d.Last[0].Was != "" || d.Last[0].Is != "" {
		t.Errorf("%+v", d.Last)
	}
}
