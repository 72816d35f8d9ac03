package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newCommand returns a command without arguments.
func newCommand(use, short, long string, run func(cmd *cobra.Command) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd) },
	}
}

// newGroup returns a command that prints its help and has other commands below it.
func newGroup(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	cmd := newCommand(use, short, long, (*cobra.Command).Help)
	cmd.AddCommand(commands...)
	return cmd
}

// limited is the value of a flag with a lower bound.
type limited struct {
	flag         string
	value, least int
}

// checkLimits returns an error that names the first value below its bound.
func checkLimits(values ...limited) error {
	for _, v := range values {
		if v.value < v.least {
			return fmt.Errorf("--%s %d: want at least %d", v.flag, v.value, v.least)
		}
	}
	return nil
}

// refuse returns an error that names the first of the flags that was given, and why it must not be.
func refuse(flags *pflag.FlagSet, why string, names ...string) error {
	for _, name := range names {
		if flags.Changed(name) {
			return fmt.Errorf("--%s %s: %s", name, flags.Lookup(name).Value, why)
		}
	}
	return nil
}

// required returns an error that names the first flag without a value.
func required(flags *pflag.FlagSet, names ...string) error {
	for _, name := range names {
		if flags.Lookup(name).Value.String() == "" {
			return fmt.Errorf("--%s is required", name)
		}
	}
	return nil
}

// copyGiven sets the flags of to as those of the same name in from that were given.
func copyGiven(to, from *pflag.FlagSet) (err error) {
	from.Visit(func(f *pflag.Flag) {
		target := to.Lookup(f.Name)
		if target == nil {
			return
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			err = errors.Join(err, target.Value.(pflag.SliceValue).Replace(list.GetSlice()))
			return
		}
		err = errors.Join(err, target.Value.Set(f.Value.String()))
	})
	return err
}

// readFile reads the file that a flag names.
func readFile[T any](flag, path string, read func(io.Reader) (T, error)) (value T, err error) {
	file, err := os.Open(path)
	if err != nil {
		return value, fmt.Errorf("%s: %w", flag, err)
	}
	defer file.Close()
	if value, err = read(file); err != nil {
		err = fmt.Errorf("%s %s: %w", flag, path, err)
	}
	return value, err
}

func writeFile(path string, to func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(to(file), file.Close())
}

// encode writes each value as a line of JSON.
func encode[T any](out io.Writer, values []T) error {
	enc := json.NewEncoder(out)
	for _, v := range values {
		if err := enc.Encode(v); err != nil {
			return err
		}
	}
	return nil
}

// encodeIndented writes a value as JSON for people.
func encodeIndented(out io.Writer, value any) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(value)
}

// listen opens the address that a flag names.
func listen(ctx context.Context, flag, address string) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		err = fmt.Errorf("%s: %w", flag, err)
	}
	return listener, err
}

// graceTime is what answers under way get to be sent once the server ends.
const graceTime = time.Second

// serveUntil serves until ctx ends, calls ending while connections are still taken, and returns when no request is left.
func serveUntil(ctx context.Context, listener net.Listener, server *http.Server, ending func()) error {
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return errors.Join(err, server.Close())
	case <-ctx.Done():
	}
	ending()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceTime)
	defer cancel()
	if server.Shutdown(grace) != nil {
		_ = server.Close()
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
