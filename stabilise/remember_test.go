package stabilise_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ragpilot/ragpilot/internal/base/budget"
	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/stabilise"
)

// asking is a body of a chat that begins with "hi".
func asking(clock, memory string, messages ...string) []byte {
	b := `{"messages":[{"role":"system","content":"A\nCurrent time: ` + clock + `\nMemories:\n` + memory + `"},{"role":"user","content":"hi"}`
	for i, m := range messages {
		b += fmt.Sprintf(`,{"role":%q,"content":%q}`, []string{"assistant", "user"}[i%2], m)
	}
	return []byte(b + "]}")
}

// Conversations that begin alike cannot be distinguished without a name: neither gets the other's memories, and of two times none is taken.
func TestAlike(t *testing.T) {
	for _, named := range []bool{false, true} {
		s := newStabiliser(t, all(stabilise.PlaceSystem))
		send := func(name string, body []byte) string {
			c := stabilise.Conversation{Tenant: "t"}
			if named {
				c.Name = name
			}
			return string(s.Body(stabilise.Chat, c, body).Body)
		}
		send("a", asking("04:01", "- a"))
		got := send("b", asking("04:02", "- b", "x", "y"))
		if want := !named; strings.Contains(got, "04:01") != want || strings.Contains(got, "- a") {
			t.Errorf("named %v: the other's first turn: %s", named, got)
		}
		send("b", asking("04:03", "- b"))
		got = send("a", asking("04:04", "- a", "other", "z"))
		if strings.Contains(got, "04:03") || strings.Contains(got, "- b") || strings.Contains(got, "04:01") != named {
			t.Errorf("named %v: two began alike: %s", named, got)
		}
		if other := s.Body(stabilise.Chat, stabilise.Conversation{Tenant: "u", Name: "a"}, asking("04:04", "- a", "o", "z")); strings.Contains(
			string(other.Body), "04:01") {
			t.Errorf("named %v: another tenant's: %s", named, other.Body)
		}
	}
}

// The user that a body names distinguishes conversations as a name does.
func TestUserInBody(t *testing.T) {
	for api, user := range map[stabilise.API]string{
		stabilise.Chat: `"user":%q`, stabilise.Responses: `"safety_identifier":%q`, stabilise.Messages: `"metadata":{"user_id":%q}`,
	} {
		s := newStabiliser(t, all(stabilise.PlaceSystem))
		send := func(name, memory, messages string) string {
			head := map[stabilise.API]string{
				stabilise.Chat:      `"messages":[{"role":"system","content":"Memories:\n%s"},`,
				stabilise.Responses: `"instructions":"Memories:\n%s","input":[`, stabilise.Messages: `"system":"Memories:\n%s","messages":[`,
			}[api]
			body := "{" + fmt.Sprintf(user, name) + "," + fmt.Sprintf(head, memory) + messages + "]}"
			return string(s.Body(api, stabilise.Conversation{}, []byte(body)).Body)
		}
		const hi, more = `{"role":"user","content":"hi"}`, `,{"role":"assistant","content":"x"},{"role":"user","content":"y"}`
		send("a", "- old", hi)
		if got := send("b", "- b", hi+more); strings.Contains(got, "old") {
			t.Errorf("API %d: another user's memories: %s", api, got)
		}
		if got := send("a", "- new", hi+more); !strings.Contains(got, "old") || !strings.Contains(got, "new") {
			t.Errorf("API %d: the user's own memories are lost: %s", api, got)
		}
	}
}

// A mark of the client that moves on changes nothing of what is known of a message.
func TestMarksMove(t *testing.T) {
	s := newStabiliser(t, all(stabilise.PlaceUser))
	send := func(clock, mark, more string) string {
		return string(s.Body(stabilise.Messages, stabilise.Conversation{}, []byte(`{"system":"A\nCurrent time: `+clock+`","messages":[{"role":"user","content":[`+
			`{"type":"tool_result","tool_use_id":"x","content":[{"type":"text","text":"r"`+mark+`}]`+mark+`}]`+mark+`}`+more+`]}`)).Body)
	}
	send("04:01", `,"cache_control":{"type":"ephemeral"}`, "")
	if got := send("04:02", "", `,{"role":"assistant","content":"x"},{"role":"user","content":"y"}`); !strings.Contains(got, "04:01") {
		t.Errorf("the first turn's line is lost: %s", got)
	}
}

// What is remembered is bounded, and the ends of conversations go before their beginnings.
func TestBound(t *testing.T) {
	b := budget.New(64 << 10)
	c := all(stabilise.PlaceSystem)
	c.Budget = b
	s := newStabiliser(t, c)
	var messages []string
	for turn := range 40 {
		s.Body(stabilise.Chat, stabilise.Conversation{Name: "long"}, asking(fmt.Sprintf("04:%02d", turn), "- m", messages...))
		messages = append(messages, fmt.Sprint("a", turn), fmt.Sprint("q", turn))
	}
	for i := range 1000 {
		body := strings.Replace(string(asking("05:00", "- m")), `"hi"`, fmt.Sprintf(`"hi %d"`, i), 1)
		s.Body(stabilise.Chat, stabilise.Conversation{Name: "long"}, []byte(body))
		if i%20 == 0 { // the beginning is in use
			s.Body(stabilise.Chat, stabilise.Conversation{Name: "long"}, asking(fmt.Sprintf("05:%02d", i/20), "- m", messages[:10]...))
		}
		if held := b.Held(""); held > 64<<10 {
			t.Fatalf("%d bytes are held", held)
		}
	}
	got := string(s.Body(stabilise.Chat, stabilise.Conversation{Name: "long"}, asking("06:00", "- m", messages...)).Body)
	for turn := range 5 {
		if !strings.Contains(got, fmt.Sprintf("04:%02d", turn)) {
			t.Errorf("turn %d was forgotten, though it was used", turn)
		}
	}
	body := asking("06:00", "- m", messages[0], messages[1], "b", "c")
	branch := string(s.Body(stabilise.Chat, stabilise.Conversation{Name: "long"}, body).Body)
	if !strings.Contains(branch, "04:01") {
		t.Errorf("a turn before those in use was forgotten: %s", branch)
	}
	if strings.Contains(got, "04:39") {
		t.Error("the last turn was not forgotten")
	}
	if b.Tables()["stabiliser"].EvictedEntries == 0 {
		t.Error("nothing was forgotten")
	}
}

// What requests that begin alike have moved counts as long as one of them is remembered, also once another took its place.
func TestBoundOfAlike(t *testing.T) {
	c := all(stabilise.PlaceSystem)
	c.Memory = 256 << 10
	s := newStabiliser(t, c)
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for i := range 300 {
		memory := fmt.Sprint("- ", i, strings.Repeat("x", 50<<10))
		s.Body(stabilise.Chat, stabilise.Conversation{Name: "n"}, asking("04:01", memory))
		s.Body(stabilise.Chat, stabilise.Conversation{Name: "n"}, asking("04:01", memory, "a", fmt.Sprint(i)))
	}
	if grown := heap() - before; grown > 2<<20 {
		t.Errorf("the heap has grown by %d bytes, 15 MB were sent, and %d may be kept", grown, c.Memory)
	}
	runtime.KeepAlive(s)
}

func TestForget(t *testing.T) {
	s := newStabiliser(t, all(stabilise.PlaceSystem))
	send := func(name string, messages ...string) string {
		body := asking(fmt.Sprint("04:0", len(messages)), "- m", messages...)
		return string(s.Body(stabilise.Chat, stabilise.Conversation{Name: name}, body).Body)
	}
	send("a")
	send("b")
	if s.Forget("", "c") || s.Forget("other", "") || !s.Forget("", "a") {
		t.Error("what was there is reported wrong")
	}
	if got := send("a", "x", "y"); strings.Contains(got, "04:00") {
		t.Errorf("remembered after it was forgotten: %s", got)
	}
	if got := send("b", "x", "y"); !strings.Contains(got, "04:00") {
		t.Errorf("forgotten with another one: %s", got)
	}
	if !s.Forget("", "") || strings.Contains(send("b", "x", "y", "z", "0"), "04:00") {
		t.Error("a tenant was not forgotten")
	}
}

func TestConcurrentUse(t *testing.T) {
	c := all(stabilise.PlaceUser)
	c.Memory, c.MaxTenants = 32<<10, 2
	s := newStabiliser(t, c)
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			var messages []string
			for i := range 50 {
				c := stabilise.Conversation{Tenant: fmt.Sprint(w % 3), Name: fmt.Sprint(w % 2)}
				s.Body(stabilise.Chat, c, asking(fmt.Sprintf("04:%02d", i), "- m", messages...))
				messages = append(messages, "a", fmt.Sprint(i))
				if i%20 == w {
					s.Forget(fmt.Sprint(w%3), fmt.Sprint(w%2))
				}
			}
		})
	}
	all.Wait()
	if s.Stats().Volatile == 0 {
		t.Error("nothing was counted")
	}
}

func BenchmarkBody(b *testing.B) {
	s := newStabiliser(b, all(stabilise.PlaceUser))
	messages := make([]string, 100)
	for i := range messages {
		messages[i] = strings.Repeat("Some words that say nothing of importance. ", 50)
	}
	body := asking("04:01", "- m", messages...)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		s.Body(stabilise.Chat, stabilise.Conversation{}, body)
	}
}

// What counts in the budget is about what is held.
func TestWeight(t *testing.T) {
	testkit.NotUnderRace(t)
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for name, body := range map[string]func(i int) []byte{
		"one turn": func(i int) []byte {
			return bytes.Replace(asking("04:01", "- m"), []byte(`"hi"`), []byte(strconv.Quote(fmt.Sprint(i))), 1)
		},
		"memories": func(i int) []byte {
			return bytes.Replace(asking("04:01", strings.Repeat("- x", 500)), []byte(`"hi"`), []byte(strconv.Quote(fmt.Sprint(i))), 1)
		},
		"tools": func(i int) []byte {
			return fmt.Appendf(nil, `{"messages":[{"role":"user","content":"%d"}],"tools":[{"name":"read_file%d"},{"name":"write_file"},{"name":"c"}]}`, i, i)
		},
	} {
		b := budget.New(1 << 30)
		c := all(stabilise.PlaceUser)
		c.Budget = b
		s := newStabiliser(t, c)
		before := heap()
		for i := range 20_000 {
			s.Body(stabilise.Chat, stabilise.Conversation{}, body(i))
		}
		grown, held := heap()-before, b.Held("")
		if ratio := float64(held) / float64(grown); ratio < 0.7 || ratio > 1.4 {
			t.Errorf("%s: %d bytes count, the heap has grown by %d", name, held, grown)
		}
		runtime.KeepAlive(s)
	}
}
