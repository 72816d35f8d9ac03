package gpu

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Options are settings of a device with memory of its own.
type Options struct {
	// Budget bounds what is allocated, in bytes; 0: nine tenths of what was free.
	Budget int64
}

// Driver opens devices of a kind. A driver's package registers it.
type Driver struct {
	// Open opens device n, or returns an error that wraps [ErrNoDevice] if there is none.
	Open func(n int, o Options) (Device, error)
	// Diagnose says what there is: see [Diagnosis].
	Diagnose func() Diagnosis
	// Measure measures the operations of device n; progress is called with what comes next.
	Measure func(ctx context.Context, n int, progress func(next string)) (Measurements, error)
}

// Diagnosis is what a driver finds on this machine.
type Diagnosis struct {
	Driver  string // version of the installed driver; empty: there is none
	Cards   []Card
	Problem string // why no card can be used; empty: one can
}

// Card is a device that a driver has found.
type Card struct {
	Device     string // name for [Open]: "cuda:0"
	Model      string
	Capability string // "9.0"
	Memory     Memory
	Log        string // of the driver when it compiled the kernels
	Problem    string // why it cannot be used; empty: it can
}

// cuda is the driver of NVIDIA's cards; nil in builds without the tag cuda.
var cuda *Driver

// RegisterCUDA makes "cuda:N" known. It is called once, before main.
func RegisterCUDA(d Driver) { cuda = &d }

// Built reports whether this program was built with a driver for cards.
func Built() bool { return cuda != nil }

// OwnMemory reports whether a device has memory of its own. It can run out, so it is allocated before requests need it.
func OwnMemory(d Device) bool {
	_, host := d.(CPU)
	return !host
}

// Measure measures the operations of the first card. The error wraps [ErrNoDevice] if there is none.
func Measure(ctx context.Context, progress func(next string)) (Measurements, error) {
	if cuda == nil {
		return Measurements{}, fmt.Errorf("%w: %s", ErrNoDevice, notBuilt)
	}
	return cuda.Measure(ctx, 0, progress)
}

// Diagnose says what cards there are. In a program without a driver only Problem is set.
func Diagnose() Diagnosis {
	if cuda == nil {
		return Diagnosis{Problem: notBuilt}
	}
	return cuda.Diagnose()
}

const notBuilt = "this program was built without the tag cuda"

// CheckName refuses a name that no device can have.
func CheckName(name string) error {
	if name == "cpu" || name == "auto" {
		return nil
	}
	_, err := cardNumber(name)
	return err
}

func cardNumber(name string) (int, error) {
	number, ok := strings.CutPrefix(name, "cuda:")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < 0 {
		return 0, fmt.Errorf("device %q: want auto, cpu, or cuda:N", name)
	}
	return n, nil
}

// Open opens a device by its name: "cpu", "cuda:N", or "auto", the first card, or the CPU with the reason why no card can be used in
// fallback.
func Open(name string, o Options) (d Device, fallback string, err error) {
	switch name {
	case "cpu":
		return CPU{}, "", nil
	case "auto":
		d, err := openCUDA(0, o)
		if err != nil {
			return CPU{}, err.Error(), nil //nolint:nilerr // that no card can be used is the result
		}
		return d, "", nil
	}
	n, err := cardNumber(name)
	if err == nil {
		d, err = openCUDA(n, o)
	}
	return d, "", err
}

func openCUDA(n int, o Options) (Device, error) {
	if cuda == nil {
		return nil, fmt.Errorf("device cuda:%d: %w: %s", n, ErrNoDevice, notBuilt)
	}
	return cuda.Open(n, o)
}
