package local

import (
	"github.com/ragpilot/ragpilot/engines/local/internal/kvfile"
	"github.com/ragpilot/ragpilot/engines/local/internal/kvstore"
	"github.com/ragpilot/ragpilot/engines/local/internal/weights"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

// openFolder opens the files of a model's keys and values.
func openFolder(config Config, file *weights.Model, kernel string) (*kvfile.Folder, error) {
	format, err := kvfile.FormatByName(config.DiskFormat)
	if err != nil {
		return nil, err
	}
	return kvfile.Open(kvfile.Config{
		Dir: config.CacheDir, Bytes: config.DiskBytes, Model: file.Name, Hash: file.Identity(), Kernel: kernel,
		Shape: kvfile.Shape{Layers: file.Layers, KV: file.KVHeads, Dim: file.HeadDim}, Format: format,
	})
}

// openMemory makes the tier in the program's memory, in front of a folder or of none. nil: there is none.
func openMemory(config Config, device gpu.Device, pageFloats int, folder *kvfile.Folder) *kvfile.Memory {
	bytes := config.HostBytes
	if bytes == 0 && gpu.OwnMemory(device) {
		bytes = DefaultHostBytes
	}
	pages := bytes / int64(4*pageFloats)
	if pages < 1 {
		return nil
	}
	return kvfile.NewMemory(int(pages), folder, config.DiskSalted)
}

// DiskStats are the files of [Config].CacheDir. Counters are since the engine was opened.
type DiskStats struct {
	Writable                                bool  // this engine writes; false: another process does, or there is no folder
	Blocks                                  int   // of this model that can be loaded
	Bytes                                   int64 // of all models' files
	Written, Read, Evicted, Damaged, Errors int64 // blocks; Errors: that could not be written
}

// Forget empties the cache in memory, as Clear does, and deletes all files of requests with this cache salt from [Config].CacheDir, of
// all models; empty: those of requests without one. The error is why files could not be deleted; it is also one if another process
// writes to the folder.
func (e *Engine) Forget(salt string) error { return e.runner.Forget(salt) }

// DiskTier is the name, in events and in contextpilot's Config.LoadCost, of the tier of files: see [Config].CacheDir.
const DiskTier = kvstore.Disk

// HostTier is that of the tier in the program's memory, where there are no files: see [Config].HostBytes.
const HostTier = kvstore.Host

// DiskCost is what Config.LoadCost says of [DiskTier] in the commands: docs/load/disk-tier.sh measured that loading takes 1.4 %
// of the time of computing (3,920 tokens of SmolLM2-135M), and 2 % is a round upper bound. An engine loads nothing while it
// takes longer than computing.
const DiskCost = 0.02

// DiskContents is what a folder of keys and values ([Config].CacheDir) holds of one model, computed by one kernel, in one format.
type DiskContents struct {
	Folder  string // below CacheDir
	Model   string // its name
	Kernel  string
	Format  string
	Blocks  int // of 16 tokens
	Bytes   int64
	Damaged int // blocks that cannot be used
	Temp    int // files that are being written, or that an ended process has left
}

// InspectDisk reads all of a folder of keys and values, also while engines use it. If it is not there the error is fs.ErrNotExist.
func InspectDisk(dir string) ([]DiskContents, error) {
	all, err := kvfile.Inspect(dir)
	out := make([]DiskContents, len(all))
	for i, c := range all {
		out[i] = DiskContents{c.Folder, c.Model, c.Kernel, c.Format, c.Pages, c.Bytes, c.Damaged, c.Temp}
	}
	return out, err
}

// RemoveDisk deletes what engines have written to a folder of keys and values: one of [DiskContents].Folder, or all (""). It is an error
// if an engine writes to it.
func RemoveDisk(dir, folder string) error { return kvfile.Remove(dir, folder) }
