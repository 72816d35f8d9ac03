package conversation_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// counter counts as a function does.
type counter func(string) int

func (c counter) Count(text string) int { return c(text) }

// tight counts as an engine whose tokens are up to a quarter more than an estimate's: at the edge of the margin.
var tight counter = func(text string) int { return contextpilot.Estimate{}.Count(text) * 5 / 4 }

func newTrimmer(t testkit.Fataler, count contextpilot.Tokenizer, o conversation.TrimOptions) *conversation.Trimmer {
	t.Helper()
	return testkit.Must(conversation.NewTrimmer(count, o))(t)
}

// words returns n tokens, the same for the same seed and different ones for different seeds.
func words(n int, seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 7))
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, "w%04x ", r.Uint32()&0xffff)
	}
	return strings.TrimSpace(b.String())
}

// trimmed returns what is sent of a history.
func trimmed(m messages, got conversation.Trimmed) (out messages) {
	for i, x := range m {
		if i >= got.Head && i < got.Tail && i != got.Alone {
			continue
		}
		if len(out) == got.Head {
			x.Texts = append([]conversation.Text(nil), x.Texts...)
			x.Texts[0].Value = got.Summary + x.Texts[0].Value
		}
		out = append(out, x)
	}
	return out
}

// A talker has a conversation with turns of any shape. Its texts are numbered.
type talker struct {
	t    *rapid.T
	said messages
	n    int
}

func (x *talker) words(most int) string {
	x.n++
	return fmt.Sprintf("#%d %s", x.n, strings.Repeat("word ", rapid.IntRange(1, most).Draw(x.t, "words")))
}

func (x *talker) say(role conversation.Role, most int) {
	x.said = append(x.said, said(role, x.words(most)))
}

// step makes one or two calls, whose results are tools' messages, or texts of one of the user's.
func (x *talker) step() {
	call, answers := said(conversation.Assistant, x.words(5)), said(conversation.User)
	for i := range rapid.IntRange(1, 2).Draw(x.t, "calls") {
		id := rapid.SampledFrom([]string{fmt.Sprint("call ", x.n, i), fmt.Sprint("again ", i), ""}).Draw(x.t, "id")
		call.Calls = append(call.Calls, conversation.Call{ID: id, Tool: "search"})
	}
	x.said = append(x.said, call)
	if rapid.IntRange(0, 4).Draw(x.t, "reminder") == 0 {
		x.say(conversation.System, 2)
	}
	together := rapid.Bool().Draw(x.t, "as the user's")
	for _, c := range call.Calls {
		answer := result(c.ID, x.words(20))
		if answers.Texts = append(answers.Texts, answer.Texts...); !together {
			x.said = append(x.said, answer)
		}
	}
	if together {
		x.said = append(x.said, answers)
	}
}

// number is that of a message's first text.
func number(m conversation.Message) (n int) {
	_, _ = fmt.Sscanf(m.Texts[0].Value, "#%d", &n)
	return n
}

func byNumber(a, b conversation.Message) int { return number(a) - number(b) }

// length is what an engine counts: with what its template puts around messages, calls and results, at most.
func length(m messages, engine counter, per int) int {
	n := per
	for _, x := range m {
		n += per
		for _, c := range x.Calls {
			n += 24 + engine(c.Tool)
		}
		for _, tx := range x.Texts {
			if n += engine(tx.Value); tx.Role == conversation.Tool {
				n += 24
			}
		}
	}
	return n
}

// paired says whether every call has its result behind it, and every result its call in front.
func paired(m messages) bool {
	open, calls := map[string]int{}, 0
	for _, x := range m {
		for _, tx := range x.Texts {
			if tx.Role != conversation.Tool {
				continue
			}
			if open[tx.Call]--; open[tx.Call] < 0 {
				return false
			}
			calls--
		}
		for _, c := range x.Calls {
			open[c.ID]++
			calls++
		}
	}
	return calls == 0
}

// pinned returns the messages that are never cut: those in front of the first user's message that is not pinned.
func pinned(m messages, turns int) messages {
	for i, x := range m {
		if x.Role == conversation.User && x.Texts[0].Role == conversation.User {
			if turns--; turns < 0 {
				return m[:i]
			}
		}
	}
	return m
}

func startsWith(m, with messages) bool {
	return len(m) >= len(with) && reflect.DeepEqual(m[:len(with)], with)
}

// A history of any shape stays within its window at every call; its cuts and summaries stay as they are until the next cut, and do
// not depend on earlier calls. Each message is sent, or was given to one summary, in order.
func TestTrimAnyHistory(t *testing.T) {
	prompts, cuts, within := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		o := conversation.TrimOptions{
			Window: rapid.IntRange(200, 700).Draw(t, "window"), Pinned: rapid.IntRange(0, 2).Draw(t, "pinned"),
			Low: rapid.SampledFrom([]int{0, 0, 60}).Draw(t, "low"), PerMessage: rapid.SampledFrom([]int{-1, 2}).Draw(t, "per message"),
		}
		var gone messages
		if rapid.Bool().Draw(t, "summary") {
			o.SummaryTokens = 12
			o.Summarize = func(_ context.Context, before string, cut []conversation.Message) (string, error) {
				if !slices.IsSortedFunc(cut, byNumber) {
					t.Fatalf("not in order: %v", cut)
				}
				gone = append(gone, cut...)
				return fmt.Sprintf("%d messages cut; %s", len(cut), before), nil
			}
		}
		count, engine := contextpilot.Tokenizer(counter(tokens.Count)), counter(tokens.Count)
		if rapid.IntRange(0, 3).Draw(t, "estimate") == 0 {
			count, engine = contextpilot.Estimate{}, tight
		}
		trimmer, x := newTrimmer(t, count, o), &talker{t: t}
		var last messages
		was := conversation.Trimmed{Tail: -1}
		call := func() {
			got, err := trimmer.Trim(context.Background(), x.said)
			gone = nil
			fresh, err2 := newTrimmer(t, count, o).Trim(context.Background(), x.said)
			if got != fresh || (err == nil) != (err2 == nil) {
				t.Fatalf("depends on earlier calls: %+v, %v; %+v, %v", got, err, fresh, err2)
			}
			if err != nil {
				if last = nil; !errors.Is(err, conversation.ErrTooLong) {
					t.Fatal(err)
				}
				return
			}
			sent := trimmed(x.said, got)
			if n, most := length(sent, engine, max(o.PerMessage, 0)), o.Window-o.Window/8; n > most || !paired(sent) {
				t.Fatalf("%d tokens, counted as %d, want at most %d; paired: %t", n, got.Tokens, most, paired(sent))
			}
			if got.Tail < was.Tail || got.Tail == was.Tail && last != nil && !startsWith(sent, last) {
				t.Fatalf("no new cut, but another beginning: %+v, was %+v", got, was)
			}
			same := got
			same.Summary = ""
			all := trimmed(x.said, same)
			if !startsWith(all, pinned(x.said, o.Pinned)) || !reflect.DeepEqual(all[len(all)-1], x.said[len(x.said)-1]) {
				t.Fatalf("%+v: what is pinned, or the last message, was cut", got)
			}
			if all = slices.Concat(gone, all); o.Summarize != nil {
				if slices.SortFunc(all, byNumber); !reflect.DeepEqual(all, x.said) {
					t.Fatalf("%+v: sent or summarized %v of %v", got, all, x.said)
				}
			}
			prompts++
			if got.Tail > was.Tail && was.Tail >= 0 {
				cuts++
			}
			if got.Alone >= 0 {
				within++
			}
			was, last = got, sent
		}
		if rapid.Bool().Draw(t, "system") {
			x.say(conversation.System, 3)
		}
		for range rapid.IntRange(1, 15).Draw(t, "turns") {
			x.say(conversation.User, 20)
			call()
			for range rapid.SampledFrom([]int{0, 0, 1, 4, 9}).Draw(t, "steps") {
				x.step()
				call()
			}
			x.say(conversation.Assistant, 20)
		}
	})
	t.Logf("%d prompts, %d cuts, %d prompts of turns that were cut", prompts, cuts, within)
	if cuts < prompts/20 || within < prompts/50 {
		t.Errorf("only %d cuts in %d prompts, %d of them within a turn", cuts, prompts, within)
	}
}

// A turn that alone exceeds the window is cut in steps, too. A call that never had a result does no harm.
func TestLongTurn(t *testing.T) {
	trimmer := newTrimmer(t, counter(tokens.Count), conversation.TrimOptions{Window: 1000, Answer: 200, PerMessage: -1})
	m := messages{said(conversation.User, "Go."), calls("lost", "search"), said(conversation.User, "Go on.")}
	cuts, tail := 0, 0
	for i := range 60 {
		m = append(m, calls(fmt.Sprint(i), "search"), result(fmt.Sprint(i), words(40, uint64(i))))
		got := testkit.Must(trimmer.Trim(t.Context(), m))(t)
		if got.Tail > tail {
			cuts, tail = cuts+1, got.Tail
		}
	}
	if cuts < 10 || cuts > 15 { // some 90 tokens a step, and 400 a cut
		t.Errorf("%d cuts", cuts)
	}
}

// talk has a conversation of 60 turns behind a system prompt, with an engine that forgets nothing. tail says from where on the first n
// messages are sent for a turn. The prompt before and its answer are cached but for the last token, in whole pages of 16.
func talk(length []int, tail func(n int) int) (prompt, computed, longest, cuts int) {
	was := 1
	for n := 2; n < len(length); n += 2 {
		from := tail(n)
		size := length[0]
		for _, k := range length[from:n] {
			size += k
		}
		cached := size - length[n-1] - 1
		if n == 2 {
			cached = 0
		} else if from != was {
			cached, cuts = length[0], cuts+1
		}
		was = from
		prompt += size
		computed += size - cached/16*16
		longest = max(longest, size)
	}
	return prompt, computed, longest, cuts
}

// slide is the tail of a buffer with a token limit, which drops the oldest turn.
func slide(length []int, limit int) func(n int) int {
	return func(n int) int {
		size := length[0]
		for _, k := range length[1:n] {
			size += k
		}
		from := 1
		for ; size > limit && from < n-1; from += 2 {
			size -= length[from] + length[from+1]
		}
		return from
	}
}

// The more a cut leaves, the more is computed, and with the default at most 0.35 of what the longest sliding window computes whose
// prompts are no longer on average: the table in docs/history.md, which -v prints.
func TestLowMarks(t *testing.T) {
	for _, perTurn := range []int{100, 200, 400} {
		m, length := messages{said(conversation.System, words(200, 1))}, []int{200}
		r := rand.New(rand.NewPCG(60, uint64(perTurn)))
		for i := range uint64(60) {
			n := perTurn/2 + r.IntN(perTurn) // a quarter is the question
			m = append(m, said(conversation.User, words(n/4, 1000+i)), said(conversation.Assistant, words(n-n/4, 2000+i)))
			length = append(length, n/4, n-n/4)
		}
		last := 0
		for _, low := range []int{800, 0, 2800, 3300} {
			trimmer := newTrimmer(t, counter(tokens.Count), conversation.TrimOptions{Window: 4096, Answer: 640, Low: low, PerMessage: -1})
			prompt, computed, longest, cuts := talk(length, func(n int) int { return testkit.Must(trimmer.Trim(t.Context(), m[:n]))(t).Tail })
			limit := sort.Search(1<<16, func(limit int) bool {
				mean, _, _, _ := talk(length, slide(length, limit))
				return mean/60 > prompt/60
			}) - 1
			mean, slid, _, _ := talk(length, slide(length, limit))
			t.Logf("turns of %d, low %d: %d cuts, mean %d, computed %d a turn; sliding mean %d, computed %d a turn; ratio %.2f",
				perTurn, low, cuts, prompt/60, computed/60, mean/60, slid/60, float64(computed)/float64(slid))
			if computed <= last || computed >= slid || low == 0 && computed*100 > slid*35 || longest > 4096-640 || cuts == 0 {
				t.Errorf("turns of %d, low %d: computed %d, with a lower mark %d, with a sliding window %d; longest prompt %d, %d cuts", perTurn, low,
					computed, last, slid, longest, cuts)
			}
			last = computed
		}
	}
}

func TestSummaries(t *testing.T) {
	asked, errBroken := 0, errors.New("broken")
	fails := errBroken
	var m messages
	for i := range 9 {
		m = append(m, said([]conversation.Role{conversation.User, conversation.Assistant}[i%2], words(10, uint64(i))))
	}
	trimmer := newTrimmer(t, counter(tokens.Count), conversation.TrimOptions{
		Window: 100, Answer: 20, SummaryTokens: 5, PerMessage: -1,
		Summarize: func(_ context.Context, _ string, cut []conversation.Message) (string, error) {
			asked++
			return fmt.Sprintf("Said %d things", len(cut)), fails
		},
	})
	got, err := trimmer.Trim(t.Context(), m)
	if err != nil || !errors.Is(got.SummaryErr, errBroken) || got.Summary != "" || got.Tail == 0 {
		t.Errorf("%+v, %v", got, err)
	}
	fails, asked = nil, 0
	for range 3 {
		got, err = trimmer.Trim(t.Context(), m)
	}
	if err != nil || asked != 1 || !strings.HasPrefix(got.Summary, "Said ") {
		t.Errorf("asked %d times: %+v, %v", asked, got, err)
	}
	m[0].Texts[0].Value += "?"
	if _, err = trimmer.Trim(t.Context(), m); err != nil || asked != 2 {
		t.Errorf("asked %d times for two histories: %v", asked, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	late := newTrimmer(t, counter(tokens.Count), conversation.TrimOptions{
		Window: 100, Summarize: func(context.Context, string, []conversation.Message) (string, error) { cancel(); return "Much.", nil },
	})
	if _, err := late.Trim(ctx, m); !errors.Is(err, context.Canceled) {
		t.Errorf("the context has ended: %v", err)
	}
}

// A summary loses its end: whole lines, whole words, or characters where there are neither.
func TestLongSummaries(t *testing.T) {
	for name, c := range map[string]struct {
		limit      int
		text, want string
	}{
		"short":     {24, " All of it.\n", "All of it.\n\n"},
		"lines":     {24, "- a bee\n- the cow\n- one dog and its bone", "- a bee\n- the cow\n\n"},
		"words":     {24, "one two three four five six seven", "one two three four\n\n"},
		"no spaces": {10, strings.Repeat("总结", 20), strings.Repeat("总结", 4) + "\n\n"},
		"one word":  {24, strings.Repeat("x", 90), strings.Repeat("x", 22) + "\n\n"},
		"no room":   {1, "some words", ""},
		"nothing":   {24, " \n", ""},
	} {
		trimmer := newTrimmer(t, counter(utf8.RuneCountInString), conversation.TrimOptions{
			Window: 200, Answer: 50, PerMessage: -1, SummaryTokens: c.limit,
			Summarize: func(context.Context, string, []conversation.Message) (string, error) { return c.text, nil },
		})
		long := strings.Repeat("x", 90)
		got, err := trimmer.Trim(t.Context(), messages{
			said(conversation.User, long), said(conversation.Assistant, long), said(conversation.User, "Why?"),
		})
		if err != nil || got.Summary != c.want {
			t.Errorf("%s: %q, want %q; %v", name, got.Summary, c.want, err)
		}
	}
}

func TestBadTrimOptions(t *testing.T) {
	for _, o := range []conversation.TrimOptions{
		{},
		{Window: -1},
		{Window: 100, Answer: 100},
		{Window: 100, Answer: -1},
		{Window: 100, High: 89},
		{Window: 100, High: -1},
		{Window: 100, Low: 89},
		{Window: 100, Low: -1},
		{Window: 100, Pinned: -1},
		{Window: 100, SummaryTokens: -1},
	} {
		if _, err := conversation.NewTrimmer(nil, o); err == nil || !strings.Contains(err.Error(), fmt.Sprint("Window ", o.Window)) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	testkit.Must(conversation.NewTrimmer(nil, conversation.TrimOptions{Window: 100, High: 88, Low: 88}))(t)
}

func TestTrimmerConcurrently(t *testing.T) {
	trimmer := newTrimmer(t, counter(tokens.Count), conversation.TrimOptions{
		Window: 200, Summarize: func(context.Context, string, []conversation.Message) (string, error) { return "Much was said.", nil },
	})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			var m messages
			for turn := range uint64(20) {
				m = append(m, said(conversation.User, words(15, uint64(i%4*100)+turn)))
				if _, err := trimmer.Trim(context.Background(), m); err != nil {
					t.Error(err)
				}
				m = append(m, said(conversation.Assistant, words(15, turn)))
			}
		})
	}
	wg.Wait()
}
