package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/contextpilot/profile"
	"github.com/ragpilot/ragpilot/docs"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/internal/lab/demo"
	"github.com/ragpilot/ragpilot/retriever/bleve"
)

// demoFlags are what the command line says.
type demoFlags struct {
	docs, script, policy, profile, capacity string
	k                                       int
	out                                     string
	local                                   local.Config
	engineFlags
}

func newDemo() *cobra.Command {
	var f demoFlags
	cmd := newCommand("demo", "Run a chat over real documents without and with ragpilot, and show the saving",
		`Demo lets several users ask questions in turn, retrieves once for each question, and sends the same blocks twice:
as retrieved and in full, and planned by ragpilot. Without flags a small language model runs in this process, over
a few short documents; it is fetched once. Where that is not possible, and with --engine sim, the documents are
ragpilot's own documentation and the engine is a simulator with a real prefix cache and a made-up clock. A table
goes to standard output, a picture to a file.`, f.run)
	flags := cmd.Flags()
	flags.StringVar(&f.docs, "docs", "", "folder of text and Markdown files in place of the built-in documentation: `DIR`")
	flags.StringVar(&f.script, "script", "",
		"questions in place of the built-in ones: `FILE` with lines {\"user\",\"turn\",\"question\"} and, if known, \"answer\"")
	flags.StringVar(&f.policy, "policy", contextpilot.DefaultPolicy, fmt.Sprintf("order `POLICY`: %v", contextpilot.PolicyNames()))
	flags.StringVar(&f.profile, "profile", "default",
		fmt.Sprintf("policy, limits and notes by `NAME` or file: %v; --policy wins", profile.Names()))
	flags.IntVar(&f.k, "k", 8, "retrieve `N` blocks for each question")
	flags.StringVar(&f.capacity, "capacity", "unlimited", "the simulator's cache in `TOKENS`")
	f.register(flags, 64)
	registerFiles(flags, &f.local)
	engine := flags.Lookup("engine")
	engine.Usage = "`auto|local|sim|URL`: a model in this process, the simulator, or the base URL of an OpenAI-compatible engine; auto is " +
		"local " +
		"for the built-in questions if that is possible, else sim"
	engine.DefValue, f.engine = "auto", "auto"
	flags.Lookup("model").Usage = "`MODEL` to ask a real engine for; with local a GGUF file, or the name of a model that can be pulled"
	flags.StringVar(&f.out, "out", "ragpilot-demo.html", "picture `FILE`; empty: none")
	return cmd
}

func (f *demoFlags) run(cmd *cobra.Command) error {
	began := time.Now()
	if _, err := contextpilot.NewPolicy(f.policy); err != nil {
		return fmt.Errorf("--policy: %w", err)
	}
	if f.k < 1 {
		return fmt.Errorf("--k %d: want at least 1", f.k)
	}
	if f.out != "" { // better now than after an hour with a real engine
		if _, err := os.Stat(filepath.Dir(f.out)); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	layout, err := profile.Load(f.profile)
	if err != nil {
		return fmt.Errorf("--profile: %w", err)
	}
	if cmd.Flags().Changed("policy") {
		layout.Policy = f.policy
	}
	config := demo.Config{Profile: layout, K: f.k, LoadCost: loadCost()}
	closeEngine, err := f.choose(cmd, &config)
	if err != nil {
		return err
	}
	defer closeEngine()
	closeIndex, err := f.documents(cmd, &config)
	if err != nil {
		return err
	}
	defer closeIndex()
	result, err := demo.Run(cmd.Context(), config)
	if err != nil {
		return err
	}
	if f.out != "" {
		if err := writePage(f.out, result); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	if err := demo.WriteTable(cmd.OutOrStdout(), result); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	if f.out != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "picture: %s\n", f.out)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "done in %.1f s\n", time.Since(began).Seconds())
	return nil
}

// choose sets up the engine: a model in this process, the simulator, or the one at --engine.
func (f *demoFlags) choose(cmd *cobra.Command, c *demo.Config) (closeEngine func(), err error) {
	if f.engine == "auto" || f.engine == "local" {
		closeEngine, err := f.chooseLocal(cmd, c)
		if err == nil || f.engine == "local" || cmd.Context().Err() != nil {
			return closeEngine, err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "simulator in place of a model: %v\n", err)
		f.engine = "sim"
	}
	if f.simulated() {
		capacity, err := tokenCount("--capacity", f.capacity)
		if err != nil {
			return nil, err
		}
		c.Tokenizer = demo.SimTokenizer{}
		c.NewEngine = func() (engines.Engine, error) { return demo.NewSimulator(capacity), nil }
		return func() {}, nil
	}
	if f.capacity != "unlimited" {
		return nil, errors.New("--capacity is the simulator's; an engine at --engine has its own")
	}
	engine, err := f.open()
	if err != nil {
		return nil, err
	}
	tokenizer, err := engine.Tokenizer(openai.TokenizerConfig{})
	if err != nil {
		return nil, err
	}
	temperature := 0.0
	c.Tokenizer, c.Temperature, c.MaxTokens = tokenizer, &temperature, f.maxTokens
	c.NewEngine = func() (engines.Engine, error) { return engine, nil }
	c.Tag = "demo" + strconv.FormatInt(time.Now().UnixNano(), 36)
	c.Progress = func(side, request string) { fmt.Fprintf(cmd.ErrOrStderr(), "%s ragpilot: %s\n", side, request) }
	return func() { _ = engine.Close() }, nil // its error is always nil
}

// chooseLocal sets up a model in this process.
func (f *demoFlags) chooseLocal(cmd *cobra.Command, c *demo.Config) (closeEngine func(), err error) {
	switch {
	case f.capacity != "unlimited":
		return nil, errors.New("--capacity is the simulator's")
	case f.engine == "local":
	case f.docs != "" || f.script != "":
		return nil, errors.New("documents and questions of one's own can be long: --engine local takes them all the same")
	default:
		if err := fast(); err != nil {
			return nil, err
		}
	}
	path, err := modelFile(cmd.Context(), f.model, cmd.ErrOrStderr())
	if err != nil {
		return nil, err
	}
	// Each side has an engine with an empty cache.
	var engine *local.Engine
	closeEngine = func() {
		if engine != nil {
			_ = engine.Close()
		}
	}
	folders := []string{"without", "without", "with"} // of both sides, before them of a trial: they must not share files either
	c.NewEngine = func() (engines.Engine, error) {
		closeEngine()
		config := f.local
		if config.CacheDir != "" {
			config.CacheDir = filepath.Join(config.CacheDir, folders[0])
		}
		folders = folders[1:]
		var err error
		engine, err = openLocal(cmd.Context(), path, config)
		return engine, err
	}
	if _, err := c.NewEngine(); err != nil { // better now
		return nil, err
	}
	temperature := 0.0
	c.Tokenizer, c.Temperature, c.MaxTokens = latest{&engine}, &temperature, f.maxTokens
	c.Progress = func(side, request string) { fmt.Fprintf(cmd.ErrOrStderr(), "%s ragpilot: %s\n", side, request) }
	return closeEngine, nil
}

// latest counts tokens with the engine that was opened last: those of closed engines are gone.
type latest struct{ engine **local.Engine }

func (l latest) Count(text string) int { return (*l.engine).Count(text) }

// documents sets up the retrieval and the questions.
func (f *demoFlags) documents(cmd *cobra.Command, c *demo.Config) (closeIndex func(), err error) {
	var index *bleve.Index
	if f.docs == "" && f.script == "" && (f.engine == "auto" || f.engine == "local") {
		var documents fs.FS
		if documents, c.Script, err = demo.Library(); err != nil {
			return nil, err
		}
		if !cmd.Flags().Changed("k") {
			c.K = demo.LibraryBlocks
		}
		c.System, c.OneSentence = demo.LibrarySystem, true
		index, err = bleve.New(documents, bleve.Options{})
	} else if index, err = f.index(cmd.Context()); err == nil {
		c.Script, err = f.questions(cmd.Context())
	}
	if err != nil {
		if index != nil {
			err = errors.Join(err, index.Close())
		}
		return nil, err
	}
	c.Search = index.Search
	return func() { _ = index.Close() }, nil // its error is of no interest after a search
}

func (f *demoFlags) index(ctx context.Context) (*bleve.Index, error) {
	if f.docs == "" {
		return bleve.New(docs.FS, bleve.Options{Exclude: demo.NotPages()})
	}
	index, err := bleve.Open(ctx, bleve.Options{Dir: f.docs})
	if err != nil {
		return nil, fmt.Errorf("--docs: %w", err)
	}
	return index, nil
}

// questions reads --script, or makes questions from --docs, or takes the built-in ones.
func (f *demoFlags) questions(ctx context.Context) (demo.Script, error) {
	if f.script != "" {
		file, err := os.Open(f.script)
		if err != nil {
			return nil, fmt.Errorf("--script: %w", err)
		}
		defer file.Close()
		s, err := demo.ReadScript(file, f.script)
		if err != nil {
			return nil, fmt.Errorf("--script: %w", err)
		}
		return s, nil
	}
	if f.docs == "" {
		return demo.DefaultScript()
	}
	root, err := os.OpenRoot(f.docs)
	if err != nil {
		return nil, fmt.Errorf("--docs: %w", err)
	}
	defer root.Close()
	s, err := demo.Derive(ctx, root.FS())
	if err != nil {
		return nil, fmt.Errorf("--docs %s: %w", f.docs, err)
	}
	return s, nil
}

// writePage writes the picture beside its place and moves it there, so that no half of one is ever found.
func writePage(name string, r *demo.Result) (err error) {
	file, err := os.CreateTemp(filepath.Dir(name), ".ragpilot-demo-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreMissing(os.Remove(file.Name())))
		}
	}()
	if err := errors.Join(demo.WritePage(file, r), file.Chmod(0o644), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
