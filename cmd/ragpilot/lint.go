package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ragpilot/ragpilot/internal/lab/lint"
	"github.com/ragpilot/ragpilot/prefixdiff"
)

// lintFlags are the flags of lint.
type lintFlags struct {
	opt    lint.Options
	prices prefixdiff.Prices
	json   bool
	fix    bool
}

func newLint() *cobra.Command {
	var f lintFlags
	cmd := &cobra.Command{
		Use:   "lint FILE…",
		Short: "Find what keeps requests from sharing a prefix",
		Long: `Lint reads request bodies, one in each line of a file, as a client sends them to OpenAI's chat, responses or completions,
to Anthropic's messages or to Gemini. It compares each with the earlier one that has the longest common prefix, and names
the first difference, if the engine could have reused what follows: its cause, its place, and the tokens that are lost.
A request of which only the end is new is no finding.

A folder may also have Go templates (.tmpl, .gotmpl, .tpl) and prompts (.txt, .md, .prompt, .golden, and .json with one
request), each compared with the others. The name - reads requests from the standard input.

No text of a request is printed without --keep-texts.

Exit status: 0 without findings, 1 with some, 2 for a file or a line that cannot be read.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("no file: name a file of requests, a folder, or - for the standard input")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runLint(cmd, args, f) },
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, "print one JSON object for each finding")
	flags.BoolVar(&f.opt.KeepTexts, "keep-texts", false, "quote the texts around a difference")
	flags.BoolVar(&f.fix, "fix", false, "bring members of tools' schemas into a fixed order in the files; nothing else is changed")
	flags.IntVar(&f.opt.Least, "min-lost", 0, "leave out findings that lose fewer `TOKENS`")
	flags.IntVar(&f.opt.BlockSize, "block-size", 0,
		"`TOKENS` in a block of the engine's cache: a shared prefix that is shorter is a finding; 0: not known")
	flags.Float64Var(&f.prices.Input, "input-price", 0, "`PRICE` of a million prompt tokens")
	flags.Float64Var(&f.prices.Cached, "cached-price", 0, "`PRICE` of a million prompt tokens from the cache")
	flags.Float64Var(&f.prices.Speed, "prefill-speed", 0, "`TOKENS` of a prompt that the engine computes in a second; 0: not known")
	return cmd
}

// check refuses values that make no sense.
func (f *lintFlags) check() error {
	if err := checkLimits(limited{"min-lost", f.opt.Least, 0}, limited{"block-size", f.opt.BlockSize, 0}); err != nil {
		return err
	}
	for name, v := range map[string]float64{"input-price": f.prices.Input, "cached-price": f.prices.Cached, "prefill-speed": f.prices.Speed} {
		if !(v >= 0) || v > 1e12 {
			return fmt.Errorf("--%s %v: want at least 0", name, v)
		}
	}
	return nil
}

// lintMemory is the size in bytes from which memory is collected more often: hashes take most of it.
const lintMemory = 768 << 20

// errFindings is the error of a check that has found something.
type errFindings int

func (e errFindings) Error() string { return quantity(int(e), "finding") }

func runLint(cmd *cobra.Command, names []string, f lintFlags) error {
	if err := f.check(); err != nil {
		return usageError{err}
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(lintMemory))
	}
	out := cmd.OutOrStdout()
	if f.fix {
		if err := fixFiles(cmd.ErrOrStderr(), names); err != nil {
			return usageError{err}
		}
	}
	lost := map[prefixdiff.Cause]*loss{}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	summary, err := lint.Run(cmd.Context(), names, cmd.InOrStdin(), f.opt, func(found lint.Finding) error {
		l := lost[found.Cause]
		if l == nil {
			l = &loss{}
			lost[found.Cause] = l
		}
		l.requests++
		l.tokens += found.Lost
		if f.json {
			money, wait := f.prices.Cost(found.Lost)
			found.Cost, found.Seconds = money, wait.Seconds()
			if len(names) == 1 && found.File == names[0] {
				found.File = ""
			}
			return encoder.Encode(found)
		}
		return printFinding(out, found)
	})
	if err != nil {
		return usageError{err}
	}
	if !f.json {
		if err := printLosses(out, summary, lost, f.prices); err != nil {
			return err
		}
	}
	if summary.BadCount > 0 {
		err := errors.Join(summary.Bad...)
		if more := summary.BadCount - len(summary.Bad); more > 0 {
			err = fmt.Errorf("%w\nand %d more", err, more)
		}
		return usageError{err}
	}
	if summary.Findings > 0 {
		return errFindings(summary.Findings)
	}
	return nil
}

// loss is what one cause costs.
type loss struct{ requests, tokens int }

func printFinding(out io.Writer, f lint.Finding) error {
	against := ""
	switch {
	case f.AgainstFile != "":
		against = " against " + f.AgainstFile
	case f.Against > 0:
		against = fmt.Sprintf(" against line %d", f.Against)
	}
	at := cmp.Or(f.Path, "the whole prompt")
	if against != "" { // how much stands in front of an action of a template is not known
		at += fmt.Sprintf(", token %d", f.Token)
	}
	_, err := fmt.Fprintf(out, "%s:%d: %s at %s: %s lost%s\n", f.File, f.Line, f.Cause, at, quantity(f.Lost, "token"), against)
	if err != nil {
		return err
	}
	if f.Was == "" && f.Is == "" {
		return nil
	}
	_, err = fmt.Fprintf(out, "\twas %q\n\tis  %q\n", f.Was, f.Is)
	return err
}

// printLosses prints a table of the causes, the most expensive one first.
func printLosses(out io.Writer, s lint.Summary, lost map[prefixdiff.Cause]*loss, prices prefixdiff.Prices) error {
	if len(lost) > 0 {
		fmt.Fprintln(out)
		w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
		fmt.Fprintln(w, "cause\trequests\ttokens lost"+costHeader(prices))
		causes := slices.SortedFunc(maps.Keys(lost), func(a, b prefixdiff.Cause) int {
			if d := lost[b].tokens - lost[a].tokens; d != 0 {
				return d
			}
			return strings.Compare(string(a), string(b))
		})
		for _, c := range causes {
			fmt.Fprintf(w, "%s\t%d\t%d%s\n", c, lost[c].requests, lost[c].tokens, costOf(prices, lost[c].tokens))
		}
		if err := w.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	text := quantity(s.Requests, "request")
	if s.Templates > 0 {
		text += ", " + quantity(s.Templates, "template")
	}
	_, err := fmt.Fprintf(out, "%s, %s, %s lost\n", text, quantity(s.Findings, "finding"), quantity(s.Lost, "token"))
	return err
}

// quantity returns a number with a noun.
func quantity(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func costHeader(p prefixdiff.Prices) string {
	header := ""
	if p.Input > p.Cached {
		header += "\tmoney"
	}
	if p.Speed > 0 {
		header += "\ttime"
	}
	return header
}

func costOf(p prefixdiff.Prices, tokens int) string {
	money, wait := p.Cost(tokens)
	text := ""
	if p.Input > p.Cached {
		text += fmt.Sprintf("\t%.4f", money)
	}
	if p.Speed > 0 {
		text += fmt.Sprintf("\t%.1fs", wait.Seconds())
	}
	return text
}

// fixFiles rewrites files of requests.
func fixFiles(out io.Writer, names []string) error {
	for _, name := range names {
		n, err := lint.Fix(name)
		if err != nil {
			return fmt.Errorf("--fix: %w", err)
		}
		if n > 0 {
			fmt.Fprintf(out, "%s: %d requests changed\n", name, n)
		}
	}
	return nil
}
