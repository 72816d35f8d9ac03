// Command release puts the parts of a release together, so that the same parts always give the same bytes.
//
//	release check BINARY SBOM            the bill of materials names every module that the binary was built from
//	release notices BINARY               the licences of these modules, on standard output
//	release pack ARCHIVE TIME FILE...    files in one folder of a .tar.gz or .zip, all of one TIME in Unix seconds
//	release sums FOLDER                  SHA-256 of each file of a folder, as sha256sum prints it
//
// "check" and "pack" name what is wrong and exit 1.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("want check BINARY SBOM, notices BINARY, pack ARCHIVE TIME FILE..., or sums FOLDER")

func run(args []string, out io.Writer) error {
	if len(args) < 2 {
		return errUsage
	}
	switch what := args[0]; {
	case what == "check" && len(args) == 3:
		return check(args[1], args[2], out)
	case what == "notices" && len(args) == 2:
		return notices(args[1], out)
	case what == "pack" && len(args) > 3:
		seconds, err := strconv.ParseInt(args[2], 10, 64)
		if err != nil {
			return fmt.Errorf("time %q: want Unix seconds", args[2])
		}
		return pack(args[1], time.Unix(seconds, 0).UTC(), args[3:])
	case what == "sums" && len(args) == 2:
		return sums(args[1], out)
	}
	return errUsage
}
