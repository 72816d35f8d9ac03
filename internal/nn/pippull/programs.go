package pippull

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// programs are what fetches Python packages, the most usual first, each as far as "download".
func programs() [][]string {
	return [][]string{{"pip"}, {"pip3"}, {"python3", "-m", "pip"}, {"python", "-m", "pip"}, {"uv", "tool", "run", "pip"}}
}

// works returns the first of some programs that is there and answers.
func works(ctx context.Context, programs [][]string) ([]string, error) {
	names := make([]string, 0, len(programs))
	for _, p := range programs {
		if _, err := exec.LookPath(p[0]); err == nil {
			cmd := command(ctx, with(p, "--version"))
			if cmd.Run() == nil {
				return p, nil
			}
			if ctx.Err() != nil {
				return nil, OrCause(ctx, nil)
			}
		}
		names = append(names, strings.Join(p, " "))
	}
	return nil, fmt.Errorf("%w (looked for %s)", ErrNoTool, strings.Join(names, ", "))
}

// with returns a program with more arguments, in a slice of its own.
func with(program []string, args ...string) []string { return slices.Concat(program, args) }

// closing bounds how long a program that has ended, or was killed, is waited for: what it started may hold its output.
const closing = 5 * time.Second

// command is a program that ends with the context, and all it starts with it.
func command(ctx context.Context, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	group(cmd)
	cmd.WaitDelay = closing
	return cmd
}
