// Command typecheck checks the types of all packages of the module in the folder given, without tests, for each of the platforms given
// as system/architecture, without compiling: files that are for a platform only, constants that are too large for 32 bits, names that a system
// lacks. What it imports is checked from its sources, its functions left out.
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/tools/go/packages"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: typecheck FOLDER SYSTEM/ARCHITECTURE...")
		os.Exit(2)
	}
	code := 0
	for _, platform := range os.Args[2:] {
		start := time.Now()
		n, err := check(os.Args[1], platform, os.Stdout)
		if err != nil {
			fmt.Println(err)
			code = 1
		}
		fmt.Printf("%s: %d packages after %.0f s\n", platform, n, time.Since(start).Seconds())
	}
	os.Exit(code)
}

// check writes what is wrong to out, and returns the number of packages.
func check(dir, platform string, out io.Writer) (int, error) {
	system, arch, ok := strings.Cut(platform, "/")
	if !ok {
		return 0, fmt.Errorf("%q is no platform: want SYSTEM/ARCHITECTURE", platform)
	}
	own, err := filepath.Abs(dir)
	if err != nil {
		return 0, err
	}
	own += string(filepath.Separator)
	all, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax |
			packages.NeedTypesInfo | packages.NeedTypesSizes,
		Dir: dir,
		ParseFile: func(fset *token.FileSet, name string, text []byte) (*ast.File, error) {
			file, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution) // nor comments
			if file != nil && !strings.HasPrefix(name, own) {
				for _, d := range file.Decls {
					if f, ok := d.(*ast.FuncDecl); ok {
						f.Body = nil
					}
				}
			}
			return file, err
		},
		Env: append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0"),
	}, "./...")
	if err != nil {
		return 0, err
	}
	wrong := false
	for _, p := range all { // what others import for their functions is not used without these
		for _, e := range p.Errors {
			fmt.Fprintln(out, e)
			wrong = true
		}
	}
	if wrong {
		return len(all), errors.New(platform + ": see above")
	}
	return len(all), nil
}
