package compress_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local/internal/compress"
	"github.com/ragpilot/ragpilot/engines/local/internal/llama"
	"github.com/ragpilot/ragpilot/engines/local/internal/modeltest"
	"github.com/ragpilot/ragpilot/engines/local/internal/weights"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

// outcome is how one question was answered: the mean negative logarithm of the probability of the answer's tokens, and whether all of
// them come first.
type outcome struct {
	nll   float64
	exact bool
}

// judge asks questions over pages.
type judge struct {
	t      *testing.T
	file   *weights.Model
	model  *compress.Model
	worker modeltest.Worker
	all    bool                 // methods, those too that are only for the table
	got    map[string][]outcome // by method: question after question
	order  []string
}

func user(text string) []engines.Message {
	return []engines.Message{{Role: "user", Content: text}}
}

func (j *judge) encode(s string) []int32 { return j.file.Tokenizer.Encode(s, false) }

// ask takes a question behind n tokens, or slots, whose pages are given. They stay as they are.
func (j *judge) ask(method string, pages []gpu.Page, n int, key, value string) {
	tokens := append(compress.Behind(j.file, user(question(key))), j.encode(answerBegins(key))...)
	answer := j.encode(" " + value)
	tokens = append(tokens, answer[:len(answer)-1]...)
	pages = slices.Clone(pages[:(n+15)/16])
	if n%16 > 0 {
		pages[n/16] = gpu.HostPage(slices.Clone(pages[n/16].Host))
	}
	pages = append(pages, modeltest.Pages(j.t, j.model.Model, max(0, n+len(tokens)-16*len(pages)))...)
	logits := j.worker.Forward([]llama.Span{{Tokens: tokens, Position: n, Pages: pages, Logits: len(answer)}})
	o := outcome{exact: true}
	for i, token := range answer {
		row := logits[i*j.model.Vocab:][:j.model.Vocab]
		most, sum := slices.Max(row), 0.0
		for _, x := range row {
			sum += math.Exp(float64(x - most))
		}
		o.nll += (math.Log(sum) - float64(row[token]-most)) / float64(len(answer))
		o.exact = o.exact && row[token] == most
	}
	if j.got[method] == nil {
		j.order = append(j.order, method)
	}
	j.got[method] = append(j.got[method], o)
}

// part computes a corpus behind the opening of a chat.
func (j *judge) part(corpus string, texts compress.Texts) *compress.Part {
	p, err := j.model.Part(j.t.Context(), nil, append(compress.Opening(j.file, introduction), j.encode(corpus)...), texts)
	if err != nil {
		j.t.Fatal(err)
	}
	return p
}

// placed keeps a share of a part by a scorer, and returns its pages.
func (j *judge) placed(p *compress.Part, scorer string, share float64) (pages []gpu.Page, slots int) {
	slots = int(math.Round(share*float64(p.Tokens())/16)) * 16
	s, err := compress.ByName(scorer)
	if err != nil {
		j.t.Fatal(err)
	}
	scores, err := s.Score(j.t.Context(), p)
	if err != nil {
		j.t.Fatal(err)
	}
	k, err := p.Keep(scores, slots)
	if err != nil {
		j.t.Fatal(err)
	}
	for i, page := range k.Pages {
		pages = append(pages, gpu.HostPage(modeltest.Placed(j.t, j.model.Model, page, k.Positions[i], i*16)))
	}
	return pages, slots
}

// write has the model write notes itself.
func (j *judge) write(p *compress.Part, most int) []int32 {
	notes, err := p.Continue(j.t.Context(), p.Prompt, func(logits []float32) int32 {
		token := int32(slices.Index(logits, slices.Max(logits)))
		if most--; most < 0 || slices.Contains(j.file.Stop, token) {
			return -1
		}
		return token
	})
	if err != nil {
		j.t.Fatal(err)
	}
	return notes
}

// answer asks all questions of a text in all ways.
func (j *judge) answer(x text, shares []float64) {
	prompt := compress.Behind(j.file, user(compress.Prompts["qa"]))
	full := j.part(x.corpus(), compress.Texts{Prompt: prompt, Repeat: compress.Behind(j.file, user(compress.Repeat))})
	n := full.Tokens()
	var own []int32
	if j.all {
		own = j.write(full, 200)
	}
	whole := full.Pages()
	asked := func(method string, pages []gpu.Page, slots int) {
		for _, i := range x.asked {
			j.ask(method, pages, slots, x.keys[i], x.values[i])
		}
	}
	asked("full", whole, n)
	for _, share := range shares {
		for _, m := range []struct {
			name, scorer string
			notes        []int32
			rest         bool // only for the table
		}{
			{"facts", "reference", j.encode(x.facts()), false},
			{"task", "task", nil, false},
			{"random", "random", nil, false},
			{"sinks + recent", "recent", nil, false},
			{"facts, paper", "paper", j.encode(x.facts()), true},
			{"short facts", "reference", j.encode(x.short()), true},
			{"topics", "reference", j.encode(x.topics()), true},
			{"own notes", "reference", own, true},
			{"SnapKV", "snapkv", nil, true},
			{"KVzip", "kvzip", nil, true},
		} {
			if m.rest && !j.all {
				continue
			}
			full.Notes = m.notes
			pages, slots := j.placed(full, m.scorer, share)
			asked(fmt.Sprintf("%s %g%%", m.name, 100*share), pages, slots)
		}
		if !j.all {
			continue
		}
		pages, slots := j.byDocument(x, prompt, share)
		asked(fmt.Sprintf("facts, 4 documents %g%%", 100*share), pages, slots)
		budget := int(share * float64(n))
		for _, i := range x.asked {
			p := j.part(
				x.retrieved(question(x.keys[i]), budget-len(compress.Opening(j.file, introduction)), j.file.Tokenizer.Count),
				compress.Texts{},
			)
			j.ask(fmt.Sprintf("retrieved %g%%", 100*share), p.Pages(), p.Tokens(), x.keys[i], x.values[i])
		}
	}
	if !j.all {
		return
	}
	for _, m := range []struct{ name, notes string }{
		{"facts as text", x.facts()},
		{"own notes as text", j.file.Tokenizer.Decode(own, false)},
	} {
		p := j.part(m.notes+"\n\n", compress.Texts{})
		asked(m.name, p.Pages(), p.Tokens())
	}
}

// byDocument keeps a share of each quarter of a text, which is computed behind the opening alone.
func (j *judge) byDocument(x text, prompt []int32, share float64) (pages []gpu.Page, slots int) {
	opening := compress.Opening(j.file, introduction)
	whole := len(opening) / 16 * 16
	head, err := j.model.Head(j.t.Context(), opening[:whole])
	if err != nil {
		j.t.Fatal(err)
	}
	pages = append(pages, head.Pages()...)
	rest := opening[whole:]
	for i := range 4 {
		from, to := i*len(x.sentences)/4, (i+1)*len(x.sentences)/4
		tokens := append(rest, j.encode(strings.Join(x.sentences[from:to], " ")+"\n\n")...)
		rest = nil
		p, err := j.model.Part(j.t.Context(), head, tokens, compress.Texts{Prompt: prompt, Notes: j.encode(x.facts())})
		if err != nil {
			j.t.Fatal(err)
		}
		scorer, err := compress.ByName("reference")
		if err != nil {
			j.t.Fatal(err)
		}
		scores, err := scorer.Score(j.t.Context(), p)
		if err != nil {
			j.t.Fatal(err)
		}
		k, err := p.Keep(scores, max(1, int(math.Round(share*float64(len(tokens))/16)))*16)
		if err != nil {
			j.t.Fatal(err)
		}
		for at, page := range k.Pages {
			pages = append(pages, gpu.HostPage(modeltest.Placed(j.t, j.model.Model, page, k.Positions[at], len(pages)*16)))
		}
	}
	return pages, len(pages) * 16
}

// means are of a method's outcomes.
func means(all []outcome) (nll, exact float64) {
	for _, o := range all {
		nll += o.nll / float64(len(all))
		if o.exact {
			exact += 1 / float64(len(all))
		}
	}
	return nll, exact
}

// worse is the interval, of 95 in 100, of how much a method's NLL is above another's, by a bootstrap over texts.
func worse(a, than []outcome) (low, high float64) {
	r := rand.New(rand.NewPCG(1, 1))
	const rounds = 2000
	diffs := make([]float64, rounds)
	for i := range diffs {
		for range len(a) / questions {
			at := r.IntN(len(a)/questions) * questions
			for q := at; q < at+questions; q++ {
				diffs[i] += (a[q].nll - than[q].nll) / float64(len(a))
			}
		}
	}
	slices.Sort(diffs)
	return diffs[rounds/40], diffs[rounds-1-rounds/40]
}

// TestSmolLM2 asks a real model questions whose answers stand in texts: it has all of them, or a share that was chosen in some way.
// RAGPILOT_COMPRESS_TEXTS is how many texts there are, RAGPILOT_COMPRESS_SHARES which shares; with either of them all methods are compared.
func TestSmolLM2(t *testing.T) {
	file, err := weights.Open(modeltest.Fast(t))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	m, err := llama.New(file, gpu.CPU{})
	if err != nil {
		t.Fatal(err)
	}
	count, shares := 20, []float64{0.25}
	all := false
	if s := os.Getenv("RAGPILOT_COMPRESS_TEXTS"); s != "" {
		all = true
		if count, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	if s := os.Getenv("RAGPILOT_COMPRESS_SHARES"); s != "" {
		shares, all = nil, true
		for f := range strings.SplitSeq(s, ",") {
			x, err := strconv.ParseFloat(f, 64)
			if err != nil {
				t.Fatal(err)
			}
			shares = append(shares, x)
		}
	}
	model, err := compress.New(m, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	j := &judge{t: t, file: file, model: model, worker: modeltest.NewWorker(t, m, 2), all: all, got: map[string][]outcome{}}
	for _, x := range makeTexts(count, 48) {
		j.answer(x, shares)
	}
	best := j.got["facts 25%"]
	t.Logf("%-24s %5s %7s  NLL above that of facts 25%%, 95 %%", "", "exact", "NLL")
	for _, name := range j.order {
		nll, exact := means(j.got[name])
		low, high := worse(j.got[name], best)
		t.Logf("%-24s %4.0f%% %7.3f  %+.3f to %+.3f", name, 100*exact, nll, low, high)
	}
	nll, exact := means(best)
	fullNLL, fullExact := means(j.got["full"])
	if exact < 0.9*fullExact || nll > fullNLL+0.1 {
		t.Errorf("with notes, %.2f exact and NLL %.3f, of the whole text %.2f and %.3f", exact, nll, fullExact, fullNLL)
	}
	for _, name := range []string{"task 25%", "random 25%", "sinks + recent 25%"} {
		if low, _ := worse(j.got[name], best); low <= 0 {
			t.Errorf("notes are not certainly better than %s", name)
		}
	}
}
