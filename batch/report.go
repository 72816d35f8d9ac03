package batch

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/batch/internal/order"
	"github.com/ragpilot/ragpilot/engines"
)

// Prices are those of a million tokens each, in any currency.
type Prices struct {
	Input  float64 // prompt tokens that are computed
	Cached float64 // prompt tokens from the cache
	Output float64
}

// Cost returns what so many tokens cost. cached is the part of prompt that comes from the cache.
func (p Prices) Cost(prompt, cached, output int64) float64 {
	return (p.Input*float64(prompt-cached) + p.Cached*float64(cached) + p.Output*float64(output)) / 1e6
}

// Tokens are those of the prompts of one order of rows.
type Tokens struct {
	Prompt   int64 // of all prompts
	Computed int64 // of these, what an engine computes whose prefix cache loses nothing; the rest is reused
}

// Report says what a job will do, before a request is sent.
type Report struct {
	Totals
	Subtrees int
	// Planned are the tokens of the job, Unplanned those without it: a request for each row in the order of the table, with its cells as they
	// stand there. Engines that keep less compute more.
	Planned, Unplanned Tokens
	// Exact: tokens are counted by the tokenizer of the engine, all of them. Otherwise Counted requests were, or none, and about four bytes
	// are taken for a token.
	Exact   bool
	Counted int
	// PerRow is what an order of its own for each row would save, as Saved counts it. It is computed for prompts that name no order, and
	// up to 100,000 rows; else 0. Whether answers stay as good is a question for "ragpilot eval --table" with the engine's model.
	PerRow int64
	// InPlace is why cells keep their places although another order was asked for; empty: they do not.
	InPlace string
}

// Tokenize returns the tokens of a chat as an engine makes them, with the beginning of the answer. It is called by several goroutines at a
// time.
type Tokenize func(ctx context.Context, messages []engines.Message) ([]int32, error)

// What is counted of a large job: whole runs of neighbours, as tokens are shared by them.
const (
	countAll      = 4000 // requests; of more a sample is counted
	countedRuns   = 8
	countAtATime  = 256
	countWorkers  = 2 // llama-server has five threads for connections, and an idle one keeps its for five seconds
	bytesPerToken = 4
)

// report counts the tokens of a prepared job.
func (p *prepared) report(ctx context.Context, o *AddOptions) (Report, error) {
	t := p.plan.Totals
	r := Report{
		Totals:   Totals{t.Rows, t.Requests, t.Bytes, t.Saved, t.FileOrder, t.Bound},
		Subtrees: len(p.begin),
	}
	var err error
	if r.PerRow, err = p.perRow(ctx); err != nil {
		return r, err
	}
	front, behind := int64(0), int64(0)
	if p.layout != nil {
		if o := p.task.Prompt.Order; o != "" && o != AsIs {
			r.InPlace = p.layout.inPlace
		}
		front, behind = int64(len(p.layout.system)+len(p.layout.head)), int64(len(p.layout.tail))
	}
	// Rows that another row's request answers are saved whole, with what stands around their units.
	requests, rows := int64(t.Requests), int64(t.Rows)
	sent, err := p.sentBytes()
	if err != nil {
		return r, err
	}
	tokens := func(n int64) int64 { return (n + bytesPerToken - 1) / bytesPerToken }
	r.Planned = Tokens{tokens(sent + requests*(front+behind)), tokens(t.Bytes - t.Saved + front + requests*behind)}
	r.Unplanned = Tokens{tokens(t.Bytes + rows*(front+behind)), tokens(t.Bytes - t.FileOrder + front + rows*behind)}
	if o.Tokenize == nil {
		return r, nil
	}
	planned, counted, whole, err := p.count(ctx, o, t.Requests, p.planPrompts())
	if err != nil {
		return r, err
	}
	unplanned, rowsCounted, wholeRows, err := p.count(ctx, o, t.Rows, p.rowPrompts())
	if err != nil || counted == 0 || rowsCounted == 0 {
		return r, err
	}
	r.Planned, r.Unplanned, r.Counted, r.Exact = planned, unplanned, counted, whole && wholeRows
	return r, nil
}

// perRow returns what an order of its own for each row would save, for those who did not ask for an order.
func (p *prepared) perRow(ctx context.Context) (int64, error) {
	const most = 100_000 // rows: planning them takes some seconds
	if p.layout == nil || p.task.Prompt.Order != "" || p.layout.inPlace != "" || p.plan.Totals.Rows > most {
		return 0, nil
	}
	plan, err := order.New(ctx, planned{p}, order.Options{Columns: order.PerRow, Dir: p.dir})
	if err != nil {
		return 0, err
	}
	return plan.Totals.Saved, plan.Close()
}

// sentBytes returns the bytes of the units of all requests.
func (p *prepared) sentBytes() (n int64, err error) {
	for r, err := range p.plan.Requests() {
		if err != nil {
			return 0, err
		}
		units, err := p.rows.row(r.Row)
		if err != nil {
			return 0, err
		}
		for _, at := range r.Order {
			n += int64(len(units[at]))
		}
	}
	return n, nil
}

// count counts the tokens of prompts. If there are many, a sample is counted and stands for all. If the tokenizer fails, nothing is
// counted.
func (p *prepared) count(ctx context.Context, o *AddOptions, total int, prompts iter.Seq2[[]engines.Message, error]) (
	sum Tokens, counted int, all bool, err error,
) {
	seen := map[xxh3.Uint128]struct{}{}
	every := max(total/countedRuns, 1)
	var chats [][]engines.Message
	flush := func() error {
		lists, err := tokenizeAll(ctx, o.Tokenize, chats)
		chats = chats[:0]
		for _, tokens := range lists {
			counted++
			sum.Prompt += int64(len(tokens))
			sum.Computed += int64(len(tokens) - known(seen, tokens, o.BlockSize))
		}
		return err
	}
	i := -1
	for messages, failed := range prompts {
		if failed != nil {
			return sum, 0, false, failed
		}
		i++
		if total > countAll && i%every >= countAll/countedRuns {
			continue
		}
		if total > countAll && i%every == 0 {
			err = flush()
			clear(seen)
		}
		if chats = append(chats, messages); len(chats) == countAtATime && err == nil {
			err = flush()
		}
		if err != nil {
			break
		}
	}
	if err == nil {
		err = flush()
	}
	if err != nil {
		return Tokens{}, 0, false, ctx.Err()
	}
	if counted == total {
		return sum, counted, true, nil
	}
	scale := float64(total) / float64(max(counted, 1))
	return Tokens{int64(float64(sum.Prompt) * scale), int64(float64(sum.Computed) * scale)}, counted, false, nil
}

// tokenizeAll returns the tokens of some chats, which are asked for side by side.
func tokenizeAll(ctx context.Context, tokenize Tokenize, chats [][]engines.Message) ([][]int32, error) {
	lists, errs := make([][]int32, len(chats)), make([]error, len(chats))
	var wait sync.WaitGroup
	for worker := range countWorkers {
		wait.Go(func() {
			for i := worker; i < len(chats); i += countWorkers {
				if lists[i], errs[i] = tokenize(ctx, chats[i]); errs[i] != nil {
					return
				}
			}
		})
	}
	wait.Wait()
	return lists, errors.Join(errs...)
}

// known returns how many tokens at the beginning an earlier prompt had, in whole blocks, and keeps this one. An engine computes at least
// one.
func known(seen map[xxh3.Uint128]struct{}, tokens []int32, block int) int {
	h := xxh3.New()
	shared, on := 0, true
	for i, t := range tokens {
		_, _ = h.Write([]byte{byte(t), byte(t >> 8), byte(t >> 16), byte(t >> 24)})
		sum := h.Sum128()
		if _, ok := seen[sum]; ok && on {
			shared = i + 1
			continue
		}
		on = false
		seen[sum] = struct{}{}
	}
	shared = max(min(shared, len(tokens)-1), 0)
	return shared - shared%max(block, 1)
}

// planPrompts returns the prompts in the order of the plan.
func (p *prepared) planPrompts() iter.Seq2[[]engines.Message, error] {
	return func(yield func([]engines.Message, error) bool) {
		for r, err := range p.requests() {
			var request engines.Request
			if err == nil {
				request, err = p.spec.request(r.Text, r.Body)
			}
			if !yield(request.Messages, err) || err != nil {
				return
			}
		}
	}
}

// rowPrompts returns the prompts of all rows as they stand in the table.
func (p *prepared) rowPrompts() iter.Seq2[[]engines.Message, error] {
	return func(yield func([]engines.Message, error) bool) {
		for units, err := range p.rows.Rows() {
			var request engines.Request
			switch {
			case err != nil:
			case p.layout == nil:
				request, err = p.spec.request("", []byte(units[1]))
			default:
				request, err = p.spec.request(strings.Join(units, ""), nil)
			}
			if !yield(request.Messages, err) || err != nil {
				return
			}
		}
	}
}
