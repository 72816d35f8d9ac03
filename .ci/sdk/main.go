// Command sdk runs a program on the stage:
//
//	sdk RAGPILOT PROGRAM ARGUMENT...
//
// The program finds the addresses of all places in SDK_PLACES, a JSON object. The status is the program's, or 1 if a
// process of the stage did not end well.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/ragpilot/ragpilot/ci/sdk/stage"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: sdk RAGPILOT PROGRAM ARGUMENT...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		if failed, ok := errors.AsType[*exec.ExitError](err); ok {
			os.Exit(failed.ExitCode())
		}
		fmt.Fprintln(os.Stderr, "sdk:", err)
		os.Exit(1)
	}
}

func run(ragpilot, program string, args []string) (err error) {
	s, err := stage.Up(ragpilot)
	if err != nil {
		return err
	}
	places, err := json.Marshal(s.URLs())
	if err != nil {
		return errors.Join(err, s.Down())
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "SDK_PLACES="+string(places), "SDK_CLOUD="+stage.CloudReachable())
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err = cmd.Run()
	if down := s.Down(); down != nil {
		fmt.Fprintln(os.Stderr, "sdk:", down)
		if err == nil {
			return errors.New("a process of the stage did not end well")
		}
	}
	return err
}
