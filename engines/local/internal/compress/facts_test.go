package compress_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// text is a text with facts in it, and notes on it that were written before anybody asked.
type text struct {
	sentences []string
	keys      []string
	values    []string // four digits each
	asked     []int    // of keys
}

var (
	keyWords = strings.Fields(
		"apple river candle mountain violin harbor pepper lantern orchid tunnel falcon marble ginger pocket saddle walnut anchor " +
			"ribbon copper meadow",
	)
	filling = []string{
		"The market opens early on Saturday.", "A train left the old station.", "Several birds crossed the quiet lake.",
		"The teacher closed the window.",
		"Fresh bread was sold near the bridge.", "The committee met again in spring.", "Rain fell for most of the night.",
		"The library has a new reading room.",
		"Two boats were repaired in the yard.", "The mayor thanked the volunteers.", "Snow covered the northern road.",
		"A choir practised in the hall.",
		"The gardener planted young trees.", "Visitors waited in front of the museum.", "The baker hired an assistant.",
		"Children painted the long fence.",
	}
)

const (
	facts     = 6
	questions = 3
)

// texts are made by a rule: text i is the same, however many there are.
func makeTexts(n, fill int) []text {
	all := make([]text, n)
	for i := range all {
		r := rand.New(rand.NewPCG(31, uint64(i)))
		x := &all[i]
		for range fill {
			x.sentences = append(x.sentences, filling[r.IntN(len(filling))])
		}
		for _, k := range r.Perm(len(keyWords))[:facts] {
			x.keys, x.values = append(x.keys, keyWords[k]), append(x.values, fmt.Sprint(1000+r.IntN(9000)))
			at := r.IntN(len(x.sentences) + 1)
			fact := fmt.Sprintf("The special magic number for %s is %s.", x.keys[len(x.keys)-1], x.values[len(x.values)-1])
			x.sentences = append(x.sentences[:at], append([]string{fact}, x.sentences[at:]...)...)
		}
		x.asked = r.Perm(facts)[:questions]
	}
	return all
}

const introduction = "Read the text and remember the special magic numbers.\n\n"

func (x text) corpus() string { return strings.Join(x.sentences, " ") + "\n\n" }

// facts are notes with the answers.
func (x text) facts() string { return x.sheet("- The special magic number for %[1]s is %[2]s.\n") }

// short are notes with the answers and little else.
func (x text) short() string { return x.sheet("- %[1]s: %[2]s\n") }

// topics are notes that only say what the text has, without any answer.
func (x text) topics() string { return x.sheet("- The special magic number for %[1]s\n") }

// sheet has a line for each fact, by a format of its key and value.
func (x text) sheet(line string) string {
	var b strings.Builder
	b.WriteString("Cheat sheet:\n")
	for i, k := range x.keys {
		b.WriteString(strings.NewReplacer("%[1]s", k, "%[2]s", x.values[i]).Replace(line))
	}
	return b.String()
}

func question(key string) string {
	return fmt.Sprintf("What is the special magic number for %s mentioned in the text?", key)
}

func answerBegins(key string) string { return fmt.Sprintf("The special magic number for %s is", key) }

// retrieved are the sentences that share most words with a question, as many as fit into so many tokens, in the text's order.
func (x text) retrieved(question string, tokens int, count func(string) int) string {
	asked := map[string]bool{}
	for _, w := range words(question) {
		asked[w] = true
	}
	shared := make([]int, len(x.sentences))
	for i, s := range x.sentences {
		for _, w := range words(s) {
			if asked[w] {
				shared[i]++
			}
		}
	}
	taken := make([]bool, len(shared))
	for most := 20; most >= 0; most-- {
		for i, n := range shared {
			if n == most {
				if tokens -= count(" " + x.sentences[i]); tokens < 0 {
					most = -1
					break
				}
				taken[i] = true
			}
		}
	}
	var out []string
	for i, s := range x.sentences {
		if taken[i] {
			out = append(out, s)
		}
	}
	return strings.Join(out, " ") + "\n\n"
}

func words(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return r < 'a' || r > 'z' })
}
