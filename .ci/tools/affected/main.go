// Command affected reads paths of changed files, one a line, and prints the packages of the module in the folder given that the changes
// may concern: those that hold a file, or that import such a package, in tests as well. A path that is in no package's folder belongs to the
// next package above it; go.mod and go.sum concern all.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
)

// listed is what "go list -json" says of a package.
type listed struct {
	ImportPath, Dir                    string
	Imports, TestImports, XTestImports []string
}

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "affected:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("want the module's folder as the argument")
	}
	packages, err := list(args[0])
	if err != nil {
		return err
	}
	var files []string
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		files = append(files, lines.Text())
	}
	if err := lines.Err(); err != nil {
		return err
	}
	for _, dir := range affected(packages, files) {
		fmt.Fprintln(out, "./"+dir)
	}
	return nil
}

// list returns the module's packages by their folders, relative to the module's.
func list(root string) (map[string]listed, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,Imports,TestImports,XTestImports", "./...")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	all := map[string]listed{}
	for d := json.NewDecoder(output); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, cmd.Wait()
		} else if err != nil {
			return nil, err
		}
		dir, err := filepath.Rel(root, p.Dir)
		if err != nil {
			return nil, err
		}
		all[filepath.ToSlash(dir)] = p
	}
}

// affected returns the folders of the packages that changes of the files may concern.
func affected(packages map[string]listed, files []string) []string {
	changed := map[string]bool{} // import paths
	for _, file := range files {
		if file == "go.mod" || file == "go.sum" {
			return slices.Sorted(maps.Keys(packages))
		}
		for dir := path.Dir(file); ; dir = path.Dir(dir) {
			if p, ok := packages[dir]; ok {
				changed[p.ImportPath] = true
				break
			}
			if dir == "." {
				break
			}
		}
	}
	// What imports a changed package may behave otherwise, and so may what imports that. What only tests import concerns these tests.
	for grown := true; grown; {
		grown = false
		for _, p := range packages {
			if !changed[p.ImportPath] && slices.ContainsFunc(p.Imports, func(i string) bool { return changed[i] }) {
				changed[p.ImportPath], grown = true, true
			}
		}
	}
	var dirs []string
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		p := packages[dir]
		if changed[p.ImportPath] || slices.ContainsFunc(slices.Concat(p.TestImports, p.XTestImports), func(i string) bool { return changed[i] }) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}
