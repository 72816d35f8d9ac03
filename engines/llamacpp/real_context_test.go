package llamacpp_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/internal/slotnote"
	"github.com/ragpilot/ragpilot/engines/llamacpp"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/internal/nn/quant"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// factText is a text with numbers in it, and notes that were written before anybody asked.
type factText struct{ corpus, notes, ask, value string }

// factTexts are made by a rule. Each has six numbers, and is asked for four of them: there are four entries for each text.
func factTexts(n int) (texts []factText) {
	keys := strings.Fields("apple river candle mountain violin harbor pepper lantern orchid tunnel falcon marble ginger pocket " +
		"saddle walnut anchor ribbon copper meadow")
	filling := []string{
		"The market opens early on Saturday.", "A train left the old station.", "Several birds crossed the quiet lake.",
		"The teacher closed the window.",
		"Fresh bread was sold near the bridge.", "The committee met again in spring.", "Rain fell for most of the night.",
		"The library has a new reading room.",
	}
	for i := range n {
		r := rand.New(rand.NewPCG(47, uint64(i)))
		var lines []string
		for range 24 {
			lines = append(lines, filling[r.IntN(len(filling))])
		}
		notes := "Cheat sheet:\n"
		var asked []factText
		for _, k := range r.Perm(len(keys))[:6] {
			value := fmt.Sprint(1000 + r.IntN(9000))
			fact := fmt.Sprintf("The special magic number for %s is %s.", keys[k], value)
			lines = slices.Insert(lines, r.IntN(len(lines)+1), fact)
			notes += "- " + fact + "\n"
			asked = append(asked, factText{
				ask:   fmt.Sprintf("What is the special magic number for %s mentioned in the text?", keys[k]),
				value: value,
			})
		}
		for _, x := range asked[:4] {
			x.corpus, x.notes = strings.Join(lines, " "), notes
			texts = append(texts, x)
		}
	}
	return texts
}

const factTask = "Remember the special magic numbers."

// contexts compresses the texts with a budget, and returns the files of both kinds by the texts' names.
func contexts(t *testing.T, dir string, texts []factText, budget string, slot local.SlotFile) (slots, files map[string]string) {
	t.Helper()
	model := os.Getenv("RAGPILOT_LLAMA_SMOLLM2")
	slots, files = map[string]string{}, map[string]string{}
	for i := 0; i < len(texts); i += 4 {
		name := fmt.Sprint("text", i/4)
		file := filepath.Join(t.TempDir(), name)
		_, err := local.Compress(t.Context(), local.Compression{
			Model: model, Threads: 1, Documents: []local.Document{{Name: name, Text: texts[i].corpus}}, Task: factTask, Notes: texts[i].notes,
			Budget: budget, Format: "f32", Out: file,
		})
		if err != nil {
			t.Fatal(err)
		}
		slot.Model, slot.Context, slot.Out = model, file, filepath.Join(dir, name+".slot")
		if _, err := local.WriteSlotFile(slot); err != nil {
			t.Fatal(err)
		}
		slots[name], files[name] = slot.Out, file
	}
	return slots, files
}

// behind is a question behind a context, and inFull one behind its text.
func behind(i int, x factText) engines.Request {
	req := greedy(fmt.Sprint(i), []engines.Message{{Role: engines.User, Content: x.ask}}, 20)
	req.Extra["context"] = json.RawMessage(fmt.Sprintf("%q", fmt.Sprint("text", i/4)))
	return req
}

// inFull has a server answer a question behind its text on a slot, past the engine. Text on both sides of the beginning of the
// documents is tokenized by itself, as the local engine does it: a server's own chat would have other tokens there.
func inFull(t *testing.T, s *server, x factText) string {
	t.Helper()
	var prompt []int32
	for _, piece := range []string{
		"<|im_start|>system\nRead the documents below. The task: " + factTask + "\n\n", x.corpus + "\n\n",
		"<|im_end|>\n<|im_start|>user\n" + x.ask + "<|im_end|>\n<|im_start|>assistant\n",
	} {
		var reply struct {
			Tokens []int32 `json:"tokens"`
		}
		s.call(t, "/tokenize", map[string]any{"content": piece, "parse_special": true}, &reply)
		prompt = append(prompt, reply.Tokens...)
	}
	var answer struct {
		Content string `json:"content"`
	}
	s.call(t, "/completion", map[string]any{"prompt": prompt, "n_predict": 20, "temperature": 0, "id_slot": 0}, &answer)
	return answer.Content
}

// call asks a server past the engine.
func (s *server) call(t *testing.T, path string, body, answer any) {
	t.Helper()
	engine, err := openai.New(openai.Config{BaseURL: "http://" + s.address})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	data, err := json.Marshal(body)
	if err == nil {
		data, err = engine.Do(t.Context(), http.MethodPost, path, data)
	}
	if err == nil {
		err = json.Unmarshal(data, answer)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// parsed is what a slot file says.
type parsed struct {
	cells int
	rows  [2][][]float32 // keys and values: layer after layer, all cells' rows
}

// parse reads a slot file, of this package or of the server.
func parse(t *testing.T, file string) (p parsed) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	next := func() int { at += 4; return int(int32(binary.LittleEndian.Uint32(data[at-4:]))) }
	next()
	next()
	at += 4 * next()
	streams := next()
	for range streams {
		if p.cells = next(); p.cells > 0 {
			break
		}
	}
	at += 12 * p.cells
	if transposed := next(); transposed != 0 {
		t.Fatalf("%s: values are transposed", file)
	}
	layers := next()
	at += 8
	for kind := range p.rows {
		for range layers {
			half, size := next() == 1, next()
			at += 4
			var row []float32
			for range p.cells * size / map[bool]int{true: 2, false: 4}[half] {
				if half {
					row = append(row, quant.FromF16(binary.LittleEndian.Uint16(data[at:])))
					at += 2
				} else {
					row = append(row, math.Float32frombits(uint32(next())))
				}
			}
			p.rows[kind] = append(p.rows[kind], row)
		}
	}
	return p
}

// An uncompressed file has the keys and values that the server has itself, but for rounding: the server multiplies with 8-bit activations.
func TestRealContextRows(t *testing.T) {
	testkit.NotUnderRace(t)
	s, dir := startSmolLM2(t, "--cache-ram", "0")
	text := factTexts(1)
	slots, _ := contexts(t, dir, text, "100%", local.SlotFile{Parallel: 2})
	inFull(t, s, text[0])
	s.post("/slots/0?action=save", `{"filename":"own.slot"}`)
	own, ours := parse(t, filepath.Join(dir, "own.slot")), parse(t, slots["text0"])
	for kind, name := range []string{"keys", "values"} {
		if len(own.rows[kind]) != len(ours.rows[kind]) {
			t.Fatalf("%d layers, the server has %d", len(ours.rows[kind]), len(own.rows[kind]))
		}
		var first, worst float64
		for layer, row := range ours.rows[kind] {
			var off, all float64
			for i, v := range row {
				w := own.rows[kind][layer][i]
				off += float64(v-w) * float64(v-w)
				all += float64(w) * float64(w)
			}
			if off = math.Sqrt(off / all); layer == 0 {
				first = off
			}
			worst = max(worst, off)
		}
		t.Logf("compressed contexts: %s of %d cells: relative difference %.5f in the first layer, at most %.5f in any", name, ours.cells,
			first, worst)
		if first > 0.02 || worst > 0.1 {
			t.Errorf("%s are other ones", name)
		}
	}
}

// Behind an uncompressed file the server answers as behind the text; behind a quarter of it, as the local engine does.
func TestRealContextAnswers(t *testing.T) {
	testkit.NotUnderRace(t)
	if testing.Short() {
		t.Skip("takes minutes")
	}
	for _, c := range []struct {
		budget, kind string
		texts        int
	}{{"100%", "f16", 10}, {"25%", "f16", 10}, {"25%", "f32", 3}} {
		t.Run(c.budget+c.kind, func(t *testing.T) {
			budget, kind, texts := c.budget, c.kind, factTexts(c.texts)
			s, dir := startSmolLM2(t, "--cache-ram", "0", "-ctk", kind, "-ctv", kind)
			slots, files := contexts(t, dir, texts, budget, local.SlotFile{Parallel: 2, Type: kind})
			engine, _ := s.engine(func(c *llamacpp.Config) { c.Contexts = slots })
			here, err := local.Open(local.Config{Model: os.Getenv("RAGPILOT_LLAMA_SMOLLM2"), Threads: 1, Contexts: files})
			if err != nil {
				t.Fatal(err)
			}
			defer here.Close()
			var same, sameHere, exact, exactFull, exactHere, computed, prompt int
			var took time.Duration
			right := func(text string, x factText) int {
				if strings.Contains(text, x.value) {
					return 1
				}
				return 0
			}
			inFullText := make([]string, len(texts))
			if budget == "100%" {
				for i, x := range texts {
					inFullText[i] = inFull(t, s, x)
				}
			}
			for i, x := range texts {
				r := ask(t.Context(), t, engine, behind(i, x))
				note, err := slotnote.Read(slots[fmt.Sprint("text", i/4)])
				if err != nil {
					t.Fatal(err)
				}
				if r.Usage.CachedTokens < len(note.Tokens) || r.Text == "" {
					t.Errorf("question %d: %+v, the context has %d tokens", i, r, len(note.Tokens))
				}
				computed, prompt, took = computed+r.Usage.PromptTokens-r.Usage.CachedTokens, prompt+r.Usage.PromptTokens, took+r.Total
				local := ask(t.Context(), t, here, behind(i, x))
				exact, exactHere = exact+right(r.Text, x), exactHere+right(local.Text, x)
				if local.Text == r.Text {
					sameHere++
				}
				if budget == "100%" {
					exactFull += right(inFullText[i], x)
					if inFullText[i] == r.Text {
						same++
					} else {
						t.Logf("%q, in full %q", r.Text, inFullText[i])
					}
				}
			}
			t.Logf("compressed contexts: %s %s: %d questions: exact %d, local engine %d (%d answers the same); %d of %d prompt tokens "+
				"computed, %v a question",
				budget, kind, len(texts), exact, exactHere, sameHere, computed, prompt, (took / time.Duration(len(texts))).Round(time.Millisecond))
			if budget == "100%" {
				t.Logf("compressed contexts: %s %s: answers as after the server's own prefill: %d of %d, exact there %d", budget, kind, same,
					len(texts), exactFull)
				if same < 38 {
					t.Error("want 38")
				}
			}
			if max(exact, exactHere)-min(exact, exactHere) > 3 {
				t.Error("the server and the local engine answer differently")
			}
		})
	}
}

// What does not fit is refused before the server sees it, and a request without a context is served.
func TestRealContextRefused(t *testing.T) {
	testkit.NotUnderRace(t)
	s, dir := startSmolLM2(t, "--cache-ram", "0")
	texts := factTexts(1)
	slots, _ := contexts(t, dir, texts, "25%", local.SlotFile{Parallel: 2})
	file := slots["text0"]
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	note, err := slotnote.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	flipped := slices.Clone(whole)
	flipped[len(flipped)/2] ^= 4
	for name, harm := range map[string]struct {
		data []byte
		note func(n *slotnote.Note)
		want string
	}{
		"cut":      {whole[:len(whole)-1], func(*slotnote.Note) {}, "its note says"},
		"empty":    {nil, func(*slotnote.Note) {}, "its note says"},
		"changed":  {flipped, func(*slotnote.Note) {}, "checksum"},
		"model":    {whole, func(n *slotnote.Note) { n.ModelFile = strings.Repeat("0", 64) }, "the server has another one"},
		"parallel": {whole, func(n *slotnote.Note) { n.Parallel = 3 }, "--parallel 3"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(file, harm.data, 0o600); err != nil {
				t.Fatal(err)
			}
			n := note
			harm.note(&n)
			if err := slotnote.Write(file, n); err != nil {
				t.Fatal(err)
			}
			engine, _ := s.engine(func(c *llamacpp.Config) {
				c.Contexts, c.Server.HTTPClient = slots, &http.Client{Transport: noRestore{t}}
			})
			_, err := engine.Generate(t.Context(), behind(0, texts[0]), nil)
			if !errors.Is(err, engines.ErrRefused) || !strings.Contains(fmt.Sprint(err), harm.want) ||
				!strings.Contains(fmt.Sprint(err), `"text0"`) {
				t.Errorf("error %v, want %q", err, harm.want)
			}
			ask(t.Context(), t, engine, greedy("x", []engines.Message{{Role: engines.User, Content: "Hello"}}, 2))
			unknown := behind(4, texts[0])
			if _, err := engine.Generate(t.Context(), unknown, nil); !errors.Is(err, engines.ErrRefused) ||
				!strings.Contains(err.Error(), `"text1"`) {
				t.Errorf("an unknown context: error %v", err)
			}
		})
	}
}

// noRestore fails a test if the server is asked to restore anything.
type noRestore struct{ t *testing.T }

func (n noRestore) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("action") == "restore" {
		n.t.Error("the server is asked to read a file that does not fit")
	}
	return http.DefaultTransport.RoundTrip(r)
}

// A context that other prompts have overwritten, and one of a server that was restarted, are restored again.
func TestRealContextLost(t *testing.T) {
	testkit.NotUnderRace(t)
	for name, files := range map[string]bool{"without slot files": false, "with slot files": true} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && !files {
				t.Skip("computes for half a minute")
			}
			lost(t, files)
		})
	}
}

func lost(t *testing.T, slotFiles bool) {
	s, dir := startSmolLM2(t, "--cache-ram", "0")
	texts := factTexts(1)
	slots, _ := contexts(t, dir, texts, "50%", local.SlotFile{Parallel: 2})
	engine, _ := s.engine(func(c *llamacpp.Config) {
		if c.Contexts = slots; slotFiles {
			c.SlotDir = dir
		}
	})
	answer := ask(t.Context(), t, engine, behind(0, texts[0]))
	for i := range 3 {
		switch i {
		case 0: // several prompts that have nothing in common
			for j := range 4 {
				ask(t.Context(), t, engine, greedy(fmt.Sprint("other", j),
					[]engines.Message{{Role: engines.System, Content: realText(j)}, {Role: engines.User, Content: "Go on."}}, 2))
			}
		case 1:
			s.restart()
		case 2: // behind the engine's back; it finds that out from the first answer, which is an error
			for _, at := range []string{"0", "1"} {
				s.post("/completion", `{"prompt":"something else","n_predict":2,"id_slot":`+at+`}`)
			}
			if r, err := engine.Generate(t.Context(), behind(0, texts[0]), nil); err == nil || r.Text != "" {
				t.Errorf("after another client's requests: %+v, error %v", r, err)
			}
		}
		again := ask(t.Context(), t, engine, behind(0, texts[0]))
		if again.Text != answer.Text {
			t.Errorf("%d: %q, want %q", i, again.Text, answer.Text)
		}
	}
}

// A server whose cache has another form refuses the file, and serves what follows.
func TestRealContextForms(t *testing.T) {
	testkit.NotUnderRace(t)
	for name, args := range map[string][]string{
		"values transposed": {"-fa", "off"},
		"another type":      {"-ctk", "f32", "-ctv", "f32"},
		"one memory":        {"--kv-unified"},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := startSmolLM2(t, append([]string{"--cache-ram", "0"}, args...)...)
			texts := factTexts(1)
			slots, _ := contexts(t, dir, texts, "32", local.SlotFile{Parallel: 2})
			engine, _ := s.engine(func(c *llamacpp.Config) { c.Contexts = slots })
			_, err := engine.Generate(t.Context(), behind(0, texts[0]), nil)
			t.Log(err)
			if !errors.Is(err, engines.ErrRefused) || !strings.Contains(fmt.Sprint(err), "did not restore it") {
				t.Errorf("error %v", err)
			}
			hello := greedy("x", []engines.Message{{Role: engines.User, Content: "Hello"}}, 4)
			if first, again := ask(t.Context(), t, engine, hello), ask(t.Context(), t, engine, hello); first.Text != again.Text || first.Text == "" {
				t.Errorf("%q, then %q", first.Text, again.Text)
			}
		})
	}
}
