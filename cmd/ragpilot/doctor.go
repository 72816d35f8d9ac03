package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/internal/lab/doctor"
	"github.com/ragpilot/ragpilot/internal/lab/figures"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

// usageError is an error in the command line: the exit status is 2, because 1 stands for problems found.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// exitStatus returns the exit status of the process.
func exitStatus(err error) int {
	if _, ok := errors.AsType[usageError](err); ok {
		return 2
	}
	return 1
}

func newDoctor() *cobra.Command {
	var cfg doctor.Config
	var asJSON bool
	var files doctorFiles
	cmd := &cobra.Command{
		Use:   "doctor [--engine URL|local]",
		Short: "Find out why an engine reuses nothing",
		Long: `Doctor asks an engine (vLLM, SGLang, llama.cpp, or any OpenAI-compatible server) what it is and how it was started,
sends it a few made-up prompts, and says what keeps it from reusing prefixes, from reporting that, or from reporting
what it evicts. No prompt of a user is sent. llama.cpp's slots are overwritten by the probes.

With --engine local it examines a model in this process, and says whether the model suits --reuse blocks: how far the
tokens that a question attends to most are those that the answer attends to.

Exit status: 0 without problems, 1 with some, 2 for a command line that makes no sense.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.NoArgs(cmd, args); err != nil {
				return usageError{err}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd, cfg, files, asJSON) },
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	flags := cmd.Flags()
	flags.StringVar(&cfg.Engine, "engine", settings.Default().InferAPIURL, "base `URL` of the engine, or local: a model in this process")
	flags.StringVar(&cfg.Model, "model", "",
		"`MODEL` that requests will name; empty: the first that is served. With --engine local: a file, or a name; empty: "+defaultModel)
	flags.StringVar(&cfg.APIKey, "api-key", "", "`KEY` for the engine; RAGPILOT_API_KEY is safer")
	flags.IntVar(&cfg.Budget, "budget", 0, "length of planned prompts in `TOKENS`, to compare with the model's window; 0: not known")
	flags.StringVar(&files.prefix, "prefix", "",
		"`FILE` with what all requests share, a text or the body of a chat: whether it is as long as a cache block. It is not sent as a prompt")
	flags.StringVar(&cfg.Events, "events", "",
		"`ENDPOINT` of the engine's KV-cache events, tcp://HOST:PORT or ipc://PATH; empty: the engine is asked")
	flags.StringVar(&cfg.Replay, "replay", "", "with --events: `ENDPOINT` that past events can be asked from")
	flags.StringVar(&cfg.Topic, "topic", "", "with --events: `PREFIX` of the events' topic")
	flags.StringVar(&cfg.Serve, "serve", "", "`URL` of a ragpilot serve in front of the engine, to be examined too")
	flags.StringVar(&cfg.ServeAPIKey, "serve-api-key", "", "`KEY` that it asks for; empty: that of --api-key; RAGPILOT_SERVE_API_KEY is safer")
	flags.BoolVar(&cfg.NoProbe, "no-probe", false, "send no prompts, only questions")
	flags.IntVar(&cfg.ProbeTokens, "probe-tokens", doctor.DefaultProbeTokens,
		"length of a made-up prompt in `TOKENS`; at least four cache blocks are taken, at most half of the window")
	flags.DurationVar(&cfg.Wait, "wait", doctor.DefaultWait, "`TIME` to wait for events")
	flags.DurationVar(&cfg.Timeout, "timeout", doctor.DefaultTimeout, "`TIME` that an answer may take")
	flags.StringVar(&files.cacheDir, "cache-dir", "", "`DIR` that an engine of ragpilot keeps keys and values in, to be read and checked too")
	flags.StringVar(&cfg.SlotDir, "slot-dir", "",
		"`DIR` that a llama.cpp server saves slots in, its --slot-save-path: whether that works is tried too")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// doctorFiles are what the command reads beside the server.
type doctorFiles struct{ prefix, cacheDir string }

// mostPrefix bounds the file of --prefix in bytes.
const mostPrefix = 16 << 20

// readPrefix reads the file of --prefix.
func readPrefix(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("--prefix: %w", err)
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, mostPrefix+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("--prefix: %w", err)
	case len(data) > mostPrefix:
		return "", fmt.Errorf("--prefix %s: longer than %d bytes", name, mostPrefix)
	case len(data) == 0:
		return "", fmt.Errorf("--prefix %s: it is empty", name)
	}
	return string(data), nil
}

func runDoctor(cmd *cobra.Command, cfg doctor.Config, files doctorFiles, asJSON bool) error {
	for name, d := range map[string]time.Duration{"--wait": cfg.Wait, "--timeout": cfg.Timeout} {
		if d <= 0 {
			return usageError{fmt.Errorf("%s %v: want more than 0", name, d)}
		}
	}
	var report *doctor.Report
	var err error
	if files.prefix != "" {
		if cfg.Prefix, err = readPrefix(files.prefix); err != nil {
			return usageError{err}
		}
	}
	if cfg.Engine == "local" {
		if err := refuse(cmd.Flags(), "not with --engine local", "api-key", "budget", "prefix", "events", "replay", "topic", "serve",
			"serve-api-key", "probe-tokens", "wait", "timeout"); err != nil {
			return usageError{err}
		}
		report, err = examineLocal(cmd.Context(), cfg.Model, !cfg.NoProbe)
	} else {
		report, err = doctor.Run(cmd.Context(), cfg)
	}
	if errors.Is(err, doctor.ErrConfig) {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	if files.cacheDir != "" {
		report.Checks = append(report.Checks, checkFiles(files.cacheDir)...)
	}
	if asJSON {
		encoder := json.NewEncoder(cmd.OutOrStdout())
		encoder.SetEscapeHTML(false)
		err = encoder.Encode(report)
	} else {
		err = report.Print(cmd.OutOrStdout())
	}
	if n := report.Count(doctor.Problem); err == nil && n > 0 {
		err = fmt.Errorf("doctor: problems found: %d", n)
	}
	return err
}

// checkFiles reads a folder of keys and values, one check for each model in it.
func checkFiles(dir string) []doctor.Check {
	all, err := local.InspectDisk(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []doctor.Check{{Name: "cache folder", Result: doctor.NotKnown, Saw: dir + " is not there: no engine has kept anything in it"}}
	case err != nil:
		return []doctor.Check{{
			Name: "cache folder", Result: doctor.Problem, Saw: err.Error(),
			Do: "mend the folder, or name another one in --cache-dir",
		}}
	case len(all) == 0:
		return []doctor.Check{{Name: "cache folder", Result: doctor.NotKnown, Saw: dir + " has nothing of an engine"}}
	}
	var checks []doctor.Check
	for _, c := range all {
		check := doctor.Check{
			Name: "cache folder", Result: doctor.OK,
			Saw: fmt.Sprintf("%s (%s, %s): %d blocks, %.1f MB in %s", c.Model, c.Kernel, c.Format, c.Blocks, figures.Megabytes(c.Bytes), c.Folder),
		}
		if c.Damaged > 0 {
			check.Result = doctor.Warning
			check.Saw += fmt.Sprintf("; %d damaged", c.Damaged)
			check.Do = "nothing is lost, they are computed again; if there are more each time, look at the disk"
		}
		checks = append(checks, check)
	}
	return checks
}
