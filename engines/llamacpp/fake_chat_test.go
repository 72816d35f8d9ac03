package llamacpp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

func same(a, b []int) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func (f *fake) chat(w http.ResponseWriter, r *http.Request) {
	b, raw := f.read(r)
	f.mu.Lock()
	f.bodies = append(f.bodies, raw)
	process := r.Context().Value(fakeProcess{}).(int)
	if f.process != process {
		f.mu.Unlock()
		panic(http.ErrAbortHandler)
	}
	prompt := f.tokenize(b.text() + strings.Repeat(" image", f.traits.longerPrompt))
	at := f.pick(b.Slot, prompt)
	for at < 0 { // the server waits too: it may not have noticed yet that a client went away
		f.freed.Wait()
		if f.process != process {
			f.mu.Unlock()
			panic(http.ErrAbortHandler)
		}
		at = f.pick(b.Slot, prompt)
	}
	if len(prompt) > 4000 {
		f.mu.Unlock()
		fail(w, http.StatusBadRequest, "request exceeds the available context size")
		return
	}
	s := &f.slots[at]
	cached := f.cached(s, prompt)
	if b.Reuse != nil && !*b.Reuse {
		cached = 0
	}
	for i := range f.slots {
		if f.traits.clears && i != at && !f.slots[i].busy {
			f.slots[i].tokens = nil
		}
	}
	f.served++
	var answer []int
	var texts []string
	for i := range max(b.Max, 2) {
		texts = append(texts, fmt.Sprintf("a%d", (f.served+i)%5))
		answer = append(answer, f.tokenize(texts[i])...)
	}
	id := fmt.Sprint("chatcmpl-", f.served)
	s.tokens, s.busy, s.restored, s.spoilt = prompt, true, false, false
	held := f.held
	f.mu.Unlock()
	count := 0
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.process != process {
			return
		}
		f.clock++
		s.tokens = slices.Concat(prompt, answer[:max(count-1, 0)])
		f.sequences[b.Messages[len(b.Messages)-1].Content] = s.tokens
		s.used, s.busy = f.clock, false
		f.freed.Broadcast()
	}()

	w.Header().Set("Content-Type", "text/event-stream")
	for i, token := range answer {
		count = i + 1
		text := texts[i] + " "
		if f.traits.unlikeText {
			text = "x" + text
		}
		chunk := map[string]any{"id": id, "choices": []any{map[string]any{"delta": map[string]any{"content": text}}}}
		if !f.traits.noDetails {
			chunk["timings"] = map[string]any{"cache_n": cached, "predicted_n": count}
			if f.traits.hidden == nil || !f.traits.hidden(i) {
				chunk["choices"].([]any)[0].(map[string]any)["logprobs"] = map[string]any{"content": []any{map[string]any{"id": token}}}
			}
		}
		send(w, chunk)
		if held != nil && i == 0 {
			select {
			case <-held:
			case <-r.Context().Done():
				return
			}
		}
		if r.Context().Err() != nil {
			return
		}
	}
	last := map[string]any{"choices": []any{map[string]any{"delta": map[string]any{}, "finish_reason": "length"}}}
	if !f.traits.noDetails {
		last["__verbose"] = map[string]any{"id_slot": at, "tokens_cached": len(prompt) + len(answer) - 1}
	}
	send(w, last)
	send(w, map[string]any{"choices": []any{}, "usage": map[string]any{
		"prompt_tokens": len(prompt), "completion_tokens": len(answer), "prompt_tokens_details": map[string]any{"cached_tokens": cached},
	}})
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func send(w http.ResponseWriter, chunk any) {
	data, _ := json.Marshal(chunk)
	fmt.Fprintf(w, "data: %s\n\n", data)
	w.(http.Flusher).Flush()
}

// left returns how much of a request some slot has, by the fake.
func (f *fake) left(lastMessage string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, s := range f.slots {
		n = max(n, same(f.sequences[lastMessage], s.tokens))
	}
	return n
}

// count returns how often a path was asked.
func (f *fake) count(path string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, p := range f.asked {
		if p == path {
			n++
		}
	}
	return n
}
