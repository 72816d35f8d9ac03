package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/contextpilot/profile"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/llamacpp"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/internal/lab/demo"
	"github.com/ragpilot/ragpilot/retriever/bleve"
)

// chatFlags are what the command line says.
type chatFlags struct {
	docs, profile string
	context       string
	k             int
	stop          []string
	local         local.Config
	slotDir       string
	slotBytes     int64
	engineFlags
}

func newChat() *cobra.Command {
	var f chatFlags
	cmd := newCommand("chat", "Chat about a folder of documents, with a model in this process or any engine",
		"Chat reads questions from the terminal, retrieves the best blocks of the documents for each, and streams the\n"+
			"answer of a small model in this process, which is fetched once, or of the engine at --engine. Under each answer\n"+
			"stand the blocks, with those that an earlier turn has shown in parentheses, and what was taken from the cache.\n"+
			"Each question is sent with the whole conversation so far. An empty line is skipped; /new begins a new conversation; /quit, or the "+
			"end of the input, ends. An interrupt\n"+
			"ends the program.", f.run)
	flags := cmd.Flags()
	flags.StringVar(&f.docs, "docs", "", "folder of documents: text, Markdown, HTML, PDF; empty: a few short ones that are built in: `DIR`")
	flags.StringVar(&f.context, "context", "",
		"compressed context (ragpilot compress) to answer from, of a model in this process, or, in the form of a slot file, of a llama.cpp "+
			"server at --engine; retrieved blocks of --docs, if that is given, come behind it: `FILE`")
	flags.IntVar(&f.k, "k", demo.LibraryBlocks, "retrieve `N` blocks for each question")
	flags.StringVar(&f.profile, "profile", "default",
		fmt.Sprintf("how prompts may differ from retrieval order: `NAME` or file: %v", profile.Names()))
	flags.StringArrayVar(&f.stop, "stop", nil, "`TEXT` that ends an answer and is not part of it; may be given several times")
	f.register(flags, 128)
	registerFiles(flags, &f.local)
	registerReuse(flags, &f.local)
	registerDevice(flags, &f.local.Device, &f.local.DeviceBytes)
	flags.StringVar(&f.slotDir, "slot-dir", "",
		"`DIR` that the llama.cpp server at --engine saves slots in, its --slot-save-path: what it computed is kept there for later runs; "+
			"empty: nowhere")
	flags.Int64Var(&f.slotBytes, "slot-bytes", llamacpp.DefaultSlotBytes, "size in `BYTES` of all slots' files in --slot-dir")
	engine := flags.Lookup("engine")
	engine.Usage = "`local|URL`: a model in this process, or the base URL of an OpenAI-compatible engine"
	engine.DefValue, f.engine = "local", "local"
	flags.Lookup("model").Usage = "`MODEL` to ask a real engine for; with local a GGUF file, or the name of a model that can be pulled"
	return cmd
}

// chatContext is the name of the context that a chat has.
const chatContext = "chat"

// answerer is an engine that can count tokens.
type answerer struct {
	engines.Engine
	contextpilot.Tokenizer
	close func() error
}

func (f *chatFlags) run(cmd *cobra.Command) (err error) {
	if f.k < 1 {
		return fmt.Errorf("--k %d: want at least 1", f.k)
	}
	if err := checkDevice(f.local.Device, f.local.DeviceBytes); err != nil {
		return err
	}
	extra, err := f.extra()
	if err != nil {
		return err
	}
	var index *bleve.Index
	if f.context == "" || f.docs != "" {
		if index, err = f.index(cmd.Context(), cmd.ErrOrStderr()); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, index.Close()) }()
	}
	engine, err := f.answerer(cmd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.close()) }()
	pilot, err := f.pilot(engine.Tokenizer)
	if err != nil {
		return err
	}
	defer engine.Subscribe(pilot.Sink(contextpilot.Scope{}))()
	c := &conversation{
		flags: f, pilot: pilot, engine: engine.Engine, index: index, extra: extra, out: cmd.OutOrStdout(),
		warnings: cmd.ErrOrStderr(),
	}
	c.begin()
	fmt.Fprintf(c.out, "engine: %s\n", engine.Name())
	return c.read(cmd.Context(), cmd.InOrStdin())
}

// extra returns the members of each request's body that are not the engine package's.
func (f *chatFlags) extra() (map[string]json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	if slices.Contains(f.stop, "") {
		return nil, errors.New(`--stop "": want a text`)
	}
	if len(f.stop) > 0 {
		stop, err := json.Marshal(f.stop)
		if err != nil {
			return nil, err
		}
		all["stop"] = stop
	}
	if f.context != "" {
		all["context"] = json.RawMessage(`"` + chatContext + `"`)
		f.local.Contexts = map[string]string{chatContext: f.context}
	}
	return all, nil
}

func (f *chatFlags) pilot(tokenizer contextpilot.Tokenizer) (*contextpilot.Pilot, error) {
	profile, err := profile.Load(f.profile)
	if err != nil {
		return nil, fmt.Errorf("--profile: %w", err)
	}
	config, err := profile.Apply(contextpilot.Config{Tokenizer: tokenizer, LoadCost: loadCost()})
	if err != nil {
		return nil, fmt.Errorf("--profile %s: %w", f.profile, err)
	}
	if f.local.Reuse != local.ReusePrefix {
		config.Recompute = f.local.Recompute
		if config.Policy == "" { // blocks are found at any place: none need move
			config.Policy = "retrieval"
		}
	}
	return contextpilot.New(config)
}

func (f *chatFlags) index(ctx context.Context, progress io.Writer) (*bleve.Index, error) {
	if f.docs == "" {
		documents, _, err := demo.Library()
		if err != nil {
			return nil, err
		}
		return bleve.New(documents, bleve.Options{})
	}
	index, err := bleve.Open(ctx, bleve.Options{Dir: f.docs, Include: bleve.Formats(), Progress: bleve.Bar(progress)})
	if err != nil {
		return nil, fmt.Errorf("--docs: %w", err)
	}
	return index, nil
}

func (f *chatFlags) answerer(cmd *cobra.Command) (answerer, error) {
	if f.engine != "local" {
		engine, err := f.open()
		if err != nil {
			return answerer{}, err
		}
		tokenizer, err := engine.Tokenizer(openai.TokenizerConfig{})
		if err != nil {
			return answerer{}, errors.Join(err, engine.Close())
		}
		if f.slotDir != "" || f.context != "" {
			return f.withSlots(cmd, engine, tokenizer)
		}
		return answerer{engine, tokenizer, engine.Close}, nil
	}
	if f.slotDir != "" {
		return answerer{},
			fmt.Errorf("--slot-dir %s: only with --engine URL of a llama.cpp server; a model in this process has --cache-dir", f.slotDir)
	}
	if f.maxTokens < 1 {
		return answerer{}, fmt.Errorf("--max-tokens %d: want at least 1", f.maxTokens)
	}
	path, err := modelFile(cmd.Context(), f.model, cmd.ErrOrStderr())
	if err != nil {
		return answerer{}, err
	}
	engine, err := openModel(path, f.local)
	if err != nil {
		return answerer{}, err
	}
	for _, w := range engine.Warnings() {
		fmt.Fprintln(cmd.ErrOrStderr(), w)
	}
	if err := slow(engine); err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "answers take long: %v\n", err)
	}
	return answerer{engine, engine, engine.Close}, nil
}

// withSlots returns an engine that keeps the server's slots in files, or has one restored that is a context. What keeps it from
// doing so is printed at the end.
func (f *chatFlags) withSlots(cmd *cobra.Command, chats *openai.Engine, tokenizer contextpilot.Tokenizer) (answerer, error) {
	slots, err := llamacpp.New(llamacpp.Config{
		Server:  openai.Config{BaseURL: f.engine, Model: f.model, APIKey: f.apiKey},
		SlotDir: f.slotDir, SlotBytes: f.slotBytes, Contexts: f.local.Contexts,
	})
	if err != nil {
		flag := "--slot-dir"
		if strings.Contains(err.Error(), "Contexts") {
			flag = "--context"
		}
		return answerer{}, errors.Join(fmt.Errorf("%s: %w", flag, err), chats.Close())
	}
	return answerer{slots, tokenizer, func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), time.Second)
		defer cancel()
		if info, err := slots.Info(ctx); err == nil && strings.HasPrefix(info.Disk, "off") {
			fmt.Fprintf(cmd.ErrOrStderr(), "slot files: %s\n", info.Disk)
		}
		return errors.Join(slots.Close(), chats.Close())
	}}, nil
}

// conversation is the chat so far.
type conversation struct {
	flags    *chatFlags
	pilot    *contextpilot.Pilot
	engine   engines.Engine
	index    *bleve.Index               // nil: nothing is retrieved
	extra    map[string]json.RawMessage // of each request
	out      io.Writer
	warnings io.Writer
	number   int
	messages []engines.Message
	blocks   []engines.BlockSpan // of messages
	prior    []string
	end      contextpilot.Position // behind the last turn
}

// begin starts a new conversation.
func (c *conversation) begin() {
	c.number++
	c.messages, c.prior, c.blocks, c.end = nil, nil, nil, contextpilot.Position{}
	if c.index != nil {
		c.messages = []engines.Message{{Role: engines.System, Content: demo.System}}
	}
}

// maxQuestion bounds a line of input, in bytes.
const maxQuestion = 1 << 20

// read answers lines until there are none. If the engine does not answer a question, the error is printed and the chat goes on.
func (c *conversation) read(ctx context.Context, in io.Reader) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	lines := make(chan string)
	var failed error // once lines is closed
	go func() {
		defer close(lines)
		s := bufio.NewScanner(in)
		s.Buffer(nil, maxQuestion)
		for s.Scan() {
			select {
			case lines <- s.Text():
			case <-ctx.Done():
				return
			}
		}
		failed = s.Err()
	}()
	for {
		fmt.Fprint(c.out, "> ")
		var line string
		more := false
		select {
		case line, more = <-lines:
		case <-ctx.Done(): // do not wait for input
			return ctx.Err()
		}
		if !more {
			fmt.Fprintln(c.out)
			return failed
		}
		switch question := strings.TrimSpace(line); question {
		case "":
		case "/quit":
			return nil
		case "/new":
			c.begin()
		default:
			if err := c.ask(ctx, question); err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				fmt.Fprintf(c.out, "\nno answer: %v\n", err)
			}
		}
	}
}

// ask answers one question, from retrieved blocks or from a compressed context alone. If that fails, the turn is taken back.
func (c *conversation) ask(ctx context.Context, question string) error {
	prompt, plan := question, contextpilot.Plan{}
	if c.index != nil {
		blocks, err := c.index.Search(ctx, question, c.flags.k)
		if err != nil {
			return err
		}
		plan = c.pilot.Plan(contextpilot.Request{
			Session: fmt.Sprintf("chat-%d", c.number), Query: question, Blocks: blocks, Prior: c.prior, Behind: c.end,
		})
		prompt = plan.Prompt(question)
	}
	messages := append(slices.Clip(c.messages), engines.Message{Role: engines.User, Content: prompt})
	request := engines.Request{ID: plan.RequestID, Messages: messages, MaxTokens: c.flags.maxTokens, Extra: c.extra}
	request.Blocks = append(slices.Clip(c.blocks), engines.BlockSpans(len(messages)-1, &plan)...)
	response, err := c.engine.Generate(ctx, request, func(piece string) error {
		_, err := io.WriteString(c.out, piece)
		return err
	})
	if err != nil {
		if c.index != nil {
			c.pilot.Observe(contextpilot.Event{Kind: contextpilot.Gone, Request: plan.RequestID})
		}
		return err
	}
	c.blocks = request.Blocks
	c.messages = append(messages, engines.Message{Role: engines.Assistant, Content: response.Text})
	c.prior = append(c.prior, prompt, response.Text)
	c.end = plan.End.Answered(response.Usage.OutputTokens)
	c.report(&plan, response)
	return nil
}

// report prints what was sent, and what the engine took from its cache.
func (c *conversation) report(plan *contextpilot.Plan, r engines.Response) {
	labels := make([]string, 0, len(plan.Items))
	for _, item := range plan.Items {
		if item.Ref != nil {
			labels = append(labels, "("+item.Label+")")
		} else {
			labels = append(labels, item.Label)
		}
	}
	cached := "an unknown part of them"
	if r.Usage.CachedKnown {
		cached = fmt.Sprint(r.Usage.CachedTokens)
	}
	if c.flags.local.Reuse != local.ReusePrefix && c.index != nil {
		cached += fmt.Sprintf(" (expected: %d of the blocks)", plan.Prefix.Tokens)
	}
	if c.flags.context != "" {
		labels = append([]string{"context"}, labels...)
	}
	fmt.Fprintf(c.out, "\n  [%s; %d prompt tokens, %s from the cache; first token after %v]\n",
		strings.Join(labels, " "), r.Usage.PromptTokens, cached, r.TTFT.Round(time.Millisecond))
	if c.index == nil && r.Context != nil && r.Context.OtherTask { // what blocks answer draws attention from the context, too
		fmt.Fprintf(c.warnings, "the context was made for another task, it seems (drift %.2f): what the question asks for may not be in it\n",
			r.Context.Drift)
	}
}
