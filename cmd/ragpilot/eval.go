package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ragpilot/ragpilot/contextpilot/profile"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/internal/lab/eval"
)

// evalFlags are the flags of eval.
type evalFlags struct {
	local local.Config
	engineFlags
	rows         string
	table        tableFlags
	generate     int
	gen          generatorFlags
	arms         []string
	profiles     []string
	permute      int
	positions    int
	margin       float64
	nllMargin    float64
	resamples    int
	parallel     int
	system       string
	out          string
	resume, json bool
}

// generatorFlags are those of eval and eval generate.
type generatorFlags struct {
	flags        *pflag.FlagSet
	task         string
	k            int
	seed         uint64
	gold         string
	followUps    float64
	connectivity int
	blockTokens  int
	hops         int
}

func (f *generatorFlags) register(flags *pflag.FlagSet) {
	f.flags = flags
	flags.StringVar(&f.task, "task", string(eval.Facts), fmt.Sprintf("generated rows: `TASK`, one of %v", eval.Tasks()))
	flags.IntVar(&f.k, "k", 5, "generated rows: `NUMBER` of blocks of each")
	flags.Uint64Var(&f.seed, "seed", 1, "`NUMBER` that all random choices follow from")
	flags.StringVar(&f.gold, "gold", string(eval.GoldRanked),
		"generated rows: rank of a block with the answer, `ranked|uniform`: rank r with weight 1/r, or all alike")
	flags.Float64Var(&f.followUps, "follow-ups", 0.25,
		"generated rows: `SHARE` of conversations that have a second turn, which retrieves some of the same blocks; with --task facts")
	flags.IntVar(&f.hops, "hops", 1, "generated rows: `NUMBER` of blocks that an answer takes, 1 or 2; with --task facts")
	flags.IntVar(&f.connectivity, "connectivity", 0, "generated rows: `NUMBER` of projects of a person, 1 to 8; 0: 2 with --task connectivity")
	flags.IntVar(&f.blockTokens, "block-tokens", 0,
		"generated rows: length of blocks in `TOKENS` of four bytes; 0: 256 with all tasks but facts, whose blocks have 60 to 120")
}

func (f *generatorFlags) rows(n int) ([]eval.Row, error) {
	options := eval.Options{
		Task: eval.Task(f.task), Rows: n, Seed: f.seed, Gold: eval.GoldRanks(f.gold), Connectivity: f.connectivity, BlockTokens: f.blockTokens,
		Hops: f.hops,
	}
	if f.flags.Changed("k") {
		options.K = f.k
	}
	if f.flags.Changed("follow-ups") {
		options.FollowUps = &f.followUps
	}
	rows, err := eval.Generate(options)
	if err != nil {
		return nil, fmt.Errorf("--%w", err)
	}
	return rows, nil
}

func newEval() *cobra.Command {
	var f evalFlags
	cmd := newCommand("eval --engine E (--rows F | --generate N | --table F --ask C)",
		"Measure whether a model answers as well from another order, references and notes",
		"Eval asks a model the same questions from the same blocks in several layouts (arms) and compares each with plain\n"+
			"retrieval order, row by row: exact match, F1 and, where the engine tells, the likelihood of the answer. A verdict\n"+
			"says whether the interval of the difference excludes a loss of the margin.\n\n"+
			"Arms: "+eval.ArmNames+".\n\n"+
			"With --table it hides a column of a table, asks for it, and compares orders of the other cells: those of ragpilot batch\n"+
			"plan --columns fixed and per-row with as-is, the order of the table. The local engine is the default then.", f.run)
	flags := cmd.Flags()
	f.register(flags, 32)
	registerFiles(flags, &f.local)
	engine := flags.Lookup("engine")
	engine.Usage, engine.DefValue = "`local|URL`: a model in this process, which tells likelihoods, too, or the base URL of an "+
		"OpenAI-compatible engine", ""
	flags.Lookup("max-tokens").Usage = "length of answers in `TOKENS`"
	flags.StringVar(&f.rows, "rows", "", "`FILE` of rows (JSON lines)")
	flags.IntVar(&f.generate, "generate", 0, "generate `N` rows in place of a file")
	f.gen.register(flags)
	f.table.register(flags)
	flags.StringSliceVar(&f.arms, "arms", eval.DefaultArms, "`ARMS` to compare; plain is always one of them")
	flags.StringSliceVar(&f.profiles, "profile", nil, "profile `NAMES` or files, each adds an arm")
	flags.IntVar(&f.permute, "permute", 0, "`N` additional arms that send the blocks of each row in random orders")
	flags.IntVar(&f.positions, "positions", 0, "`N` additional arms that put the block with the answer at N places from the first to the last")
	standard := eval.DefaultSettings()
	flags.Float64Var(&f.margin, "margin", 100*standard.Margin, "`POINTS` of exact match that may be lost")
	flags.Float64Var(&f.nllMargin, "nll-margin", standard.NLLMargin, "`NATS` per token by which the likelihood of answers may fall")
	flags.IntVar(&f.resamples, "resamples", standard.Resamples, "`N` resamples behind each interval")
	flags.IntVar(&f.parallel, "parallel", 1, "`N` rows that are with the engine at a time")
	flags.StringVar(&f.system, "system", eval.DefaultSystem, "`TEXT` of the system message; with --table another default")
	flags.StringVar(&f.out, "out", "",
		"`DIR` for outcomes.jsonl (with --table one for each order), report.txt, report.json, quality.svg and, if an arm is not "+
			"inferior, profile.json; with --positions also positions.svg and positions.json, a profile")
	flags.BoolVar(&f.resume, "resume", false, "go on with the outcomes in --out")
	flags.BoolVar(&f.json, "json", false, "print the report as JSON")
	cmd.AddCommand(newEvalGenerate())
	return cmd
}

func newEvalGenerate() *cobra.Command {
	var f generatorFlags
	var n int
	var out string
	cmd := newCommand("generate --rows N", "Write made-up rows for eval",
		`Generate writes rows whose blocks state made-up facts, each row with one block that has the answer and others that say
the same of other things. --task has harder ones: a corpus of people, projects and memberships whose questions join
several blocks (CacheNotes), codes among sentences without facts, variables that hand on a value, and frequent words
(the kinds of RULER). The same flags give the same bytes everywhere.`, func(cmd *cobra.Command) error {
			if n < 1 {
				return fmt.Errorf("--rows %d: want at least 1", n)
			}
			rows, err := f.rows(n)
			if err != nil {
				return err
			}
			if out == "-" {
				return eval.WriteRows(cmd.OutOrStdout(), rows)
			}
			return writeFile(out, func(w io.Writer) error { return eval.WriteRows(w, rows) })
		})
	flags := cmd.Flags()
	flags.IntVar(&n, "rows", 2000, "`NUMBER` of rows")
	flags.StringVar(&out, "out", "-", "`FILE` to write, - for standard output")
	f.register(flags)
	return cmd
}

func (f *evalFlags) run(cmd *cobra.Command) error {
	if f.table.given() {
		return f.runTable(cmd)
	}
	if err := f.check(); err != nil {
		return err
	}
	rows, err := f.readRows()
	if err != nil {
		return err
	}
	arms, err := f.readArms()
	if err != nil {
		return err
	}
	scorer, done, err := f.scorer(cmd.Context())
	if err != nil {
		return err
	}
	defer done()
	run := &eval.Run{
		Rows: rows, Arms: arms, Scorer: scorer, System: f.system, MaxTokens: f.maxTokens, Seed: f.gen.seed, Parallel: f.parallel,
	}
	head, err := run.Header()
	if err != nil {
		return err
	}
	outcomes, err := f.ask(cmd.Context(), cmd.ErrOrStderr(), run, head, "outcomes.jsonl")
	if err != nil {
		return err
	}
	report, err := eval.Judge(head, outcomes, f.settings())
	if err != nil {
		return err
	}
	return f.report(cmd, report)
}

func (f *evalFlags) settings() eval.Settings {
	return eval.Settings{Margin: f.margin / 100, NLLMargin: f.nllMargin, Resamples: f.resamples, Seed: f.gen.seed}
}

// report writes the report to --out and prints it.
func (f *evalFlags) report(cmd *cobra.Command, report *eval.Report) error {
	if err := f.write(report); err != nil {
		return err
	}
	if f.json {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(report)
	}
	return report.Text(cmd.OutOrStdout())
}

func (f *evalFlags) check() error {
	switch {
	case f.rows == "" && f.generate == 0:
		return errors.New("--rows, --generate, --table: give one of them")
	case f.rows != "" && f.generate != 0:
		return fmt.Errorf("--rows %s: not together with --generate", f.rows)
	case f.generate < 0:
		return fmt.Errorf("--generate %d: must not be negative", f.generate)
	}
	return f.checkRest()
}

// checkRest checks what does not depend on where rows are from.
func (f *evalFlags) checkRest() error {
	switch {
	case f.permute < 0 || f.permute > 1000:
		return fmt.Errorf("--permute %d: want 0 to 1000", f.permute)
	case f.positions != 0 && (f.positions < 2 || f.positions > 100):
		return fmt.Errorf("--positions %d: want 0, or 2 to 100", f.positions)
	case !(f.margin > 0 && f.margin < 100):
		return fmt.Errorf("--margin %v: want more than 0 and less than 100 points", f.margin)
	case !(f.nllMargin > 0):
		return fmt.Errorf("--nll-margin %v: want more than 0", f.nllMargin)
	case f.resamples < 100:
		return fmt.Errorf("--resamples %d: want at least 100", f.resamples)
	case f.parallel < 1:
		return fmt.Errorf("--parallel %d: want at least 1", f.parallel)
	case f.maxTokens < 1:
		return fmt.Errorf("--max-tokens %d: want at least 1", f.maxTokens)
	case f.resume && f.out == "":
		return errors.New("--resume: --out is required")
	}
	return nil
}

func (f *evalFlags) readRows() ([]eval.Row, error) {
	if f.rows == "" {
		return f.gen.rows(f.generate)
	}
	return readFile("--rows", f.rows, eval.ReadRows)
}

// readArms puts the plain arm in front.
func (f *evalFlags) readArms() ([]eval.Arm, error) {
	plain, err := eval.ParseArm(eval.Plain)
	if err != nil {
		return nil, err
	}
	arms := []eval.Arm{plain}
	for _, name := range f.arms {
		arm, err := eval.ParseArm(name)
		if err != nil {
			return nil, fmt.Errorf("--arms %w", err)
		}
		if name != eval.Plain {
			arms = append(arms, arm)
		}
	}
	for _, path := range f.profiles {
		p, err := profile.Load(path)
		if err != nil {
			return nil, fmt.Errorf("--profile %s: %w", path, err)
		}
		if p.Name == "" {
			p.Name = filepath.Base(path)
		}
		arms = append(arms, eval.Arm{Name: p.Name, Profile: p})
	}
	arms = append(append(arms, eval.Permutations(f.permute)...), eval.Positions(f.positions)...)
	if err := eval.CheckArms(arms); err != nil {
		return nil, fmt.Errorf("--arms, --profile: %w", err)
	}
	return arms, nil
}

// ask runs what is not done yet.
func (f *evalFlags) ask(ctx context.Context, progress io.Writer, run *eval.Run, head eval.Header, name string) (
	_ []eval.Outcome, err error,
) {
	var log *eval.Log
	if f.out != "" {
		if log, run.Done, err = f.openLog(head, name); err != nil {
			return nil, fmt.Errorf("--out: %w", err)
		}
		defer func() { err = errors.Join(err, log.Close()) }()
	}
	meter := newEvalMeter(progress, run)
	run.Record = func(o *eval.Outcome) error {
		meter.add(o)
		if log == nil {
			return nil
		}
		return log.Add(o)
	}
	return run.Do(ctx)
}

func (f *evalFlags) openLog(head eval.Header, name string) (*eval.Log, []eval.Outcome, error) {
	if err := os.MkdirAll(f.out, 0o755); err != nil {
		return nil, nil, err
	}
	path := filepath.Join(f.out, name)
	if f.resume {
		return eval.ResumeLog(path, head)
	}
	log, err := eval.CreateLog(path, head)
	if errors.Is(err, os.ErrExist) {
		return nil, nil, fmt.Errorf("%s is there already: --resume goes on with it", path)
	}
	return log, nil, err
}

// write writes the files of --out.
func (f *evalFlags) write(r *eval.Report) error {
	if f.out == "" {
		return nil
	}
	files := map[string]func(io.Writer) error{
		"report.txt":  r.Text,
		"quality.svg": func(w io.Writer) error { _, err := w.Write(r.Plot()); return err },
		"report.json": func(w io.Writer) error { return encodeIndented(w, r) },
	}
	if p := r.Reading; p != nil {
		files["positions.svg"] = func(w io.Writer) error { _, err := w.Write(p.Plot(r.Header.Scorer)); return err }
		files["positions.json"] = p.Profile().Write
	}
	profile := filepath.Join(f.out, "profile.json")
	if p, ok := r.Choice(); ok {
		files["profile.json"] = p.Write
	} else if err := os.Remove(profile); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("--out: %w", err)
	}
	for name, to := range files {
		if err := writeFile(filepath.Join(f.out, name), to); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	return nil
}

// evalProgress is the time between two lines of progress.
const evalProgress = 10 * time.Second

// evalMeter prints how far a run is. Not safe for concurrent use.
type evalMeter struct {
	out              io.Writer
	arm              string // the first one
	rows, old, done  int
	exact            int // rows that it has right
	began, lastPrint time.Time
}

func newEvalMeter(out io.Writer, run *eval.Run) *evalMeter {
	m := &evalMeter{out: out, arm: run.Arms[0].Name, rows: len(run.Rows), began: time.Now()}
	for i := range run.Done {
		m.count(&run.Done[i])
	}
	m.old = m.done
	if m.old > 0 {
		fmt.Fprintf(out, "%d of %d rows are done\n", m.old, m.rows)
	}
	m.lastPrint = m.began
	return m
}

func (m *evalMeter) count(o *eval.Outcome) {
	m.done++
	if o.Arms[0].Exact {
		m.exact++
	}
}

func (m *evalMeter) add(o *eval.Outcome) {
	m.count(o)
	now := time.Now()
	if now.Sub(m.lastPrint) < evalProgress && m.done < m.rows {
		return
	}
	m.lastPrint = now
	each := now.Sub(m.began) / time.Duration(m.done-m.old)
	left := (each * time.Duration(m.rows-m.done)).Round(time.Second)
	fmt.Fprintf(m.out, "%d of %d rows, %s exact match %.1f %%, %v a row, %v left\n",
		m.done, m.rows, m.arm, 100*float64(m.exact)/float64(m.done), each.Round(time.Millisecond), left)
}
