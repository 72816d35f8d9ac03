package docs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/ragpilot/ragpilot"

// A rule says what packages may import. The core knows no technology, adapters know the core and not each other, only cmd wires.
// In rules, a path is that of a package and of all below it, one that ends in "/." only that of the package. Paths without a dot in their
// first element are of this module.
type rule struct {
	name    string
	in, but []string // whom it concerns; no one in but
	tests   bool     // it concerns their tests as well
	only    []string // they import the standard library and these
	not     []string // they do not import these
	why     string   // for the message
}

var rules = []rule{
	{
		name: "core", in: []string{"contextpilot/.", "contextpilot/profile", "contextpilot/policytest"},
		only: []string{
			"contextpilot", "internal/base/lru", "internal/paper", "internal/prompt", "internal/base/strictjson", "github.com/zeebo/xxh3",
		},
	},
	{
		name: "core-internal", why: "what the core imports must not lead out of it either",
		in: []string{
			"contextpilot/internal", "internal/paper", "internal/base/lru", "internal/base/queue", "internal/prompt/markup", "internal/prompt/notes",
			"internal/prompt/offline",
		},
		only: []string{"contextpilot/internal", "internal/base/lru", "internal/paper", "internal/base/queue", "github.com/zeebo/xxh3"},
	},
	{
		name: "conversation", in: []string{"conversation/."}, why: "it knows messages and texts, and nothing of bodies or frameworks",
		only: []string{"contextpilot", "engines/evict", "internal", "github.com/zeebo/xxh3"},
	},
	{
		name: "stabilise", in: []string{"stabilise"}, why: "it knows bodies and messages, and no framework",
		only: []string{"conversation", "internal/base", "internal/prompt", "github.com/tidwall/gjson", "github.com/zeebo/xxh3"},
	},
	{
		name: "conversation-reader", in: []string{"conversation/conversationtest"}, why: "it is to share no mistake with what it reads",
		only: []string{},
	},
	{
		name: "internal", in: []string{"internal"}, tests: true, why: "only adapters import langchaingo",
		not: []string{"github.com/tmc/langchaingo"},
	},
	{name: "engines", in: []string{"engines"}, not: []string{"retriever"}, why: "adapters do not import each other"},
	{
		name: "libraries-without-server", in: []string{""}, but: []string{"cmd", "internal/sidecar", "internal/lab", "internal/testkit"},
		not: []string{"internal/sidecar"}, why: "only commands and the lab import the sidecar",
	},
	{
		name: "product-without-lab", in: []string{""},
		but: []string{"cmd", "internal/lab", "internal/testkit", "engines/local/internal/modeltest"},
		not: []string{"internal/lab", "internal/testkit"}, why: "only commands and tests import the lab, and only tests import the testkit",
	},
	{name: "examples", in: []string{"examples"}, tests: true, not: []string{"internal"}, why: "they show what users can write"},
	{
		name: "engines-without-framework", in: []string{"engines"}, but: []string{"engines/langchain"}, tests: true,
		not: []string{"github.com/tmc/langchaingo"}, why: "only engines/langchain imports langchaingo",
	},
	{name: "retriever", in: []string{"retriever"}, not: []string{"engines"}, why: "adapters do not import each other"},
	{name: "citation", in: []string{"citation"}, only: []string{"contextpilot"}},
	{
		name: "batch-table", in: []string{"batch/table"}, why: "it knows files and databases, and nothing of prompts",
		not: []string{"contextpilot", "engines"},
	},
	{
		name: "batch-queue", in: []string{"batch/internal/queue"}, why: "it stores requests and answers, and neither makes nor answers them",
		not: []string{"batch/internal/order", "batch/internal/dispatch", "batch/table", "contextpilot"},
	},
	{
		name: "batch-dispatch", in: []string{"batch/internal/dispatch"}, why: "it sends calls, wherever they are from",
		not: []string{"batch/internal/order", "batch/internal/queue", "batch/table", "github.com/riverqueue"},
	},
	{
		name: "prefixdiff", in: []string{"prefixdiff"}, why: "it reads bodies and knows no framework",
		only: []string{"internal/base/validjson", "internal/prompt", "github.com/tidwall/gjson", "github.com/zeebo/xxh3"},
	},
	{name: "ragpilottest", in: []string{"ragpilottest"}, only: []string{"prefixdiff", "internal/prompt"}, why: "users' tests compile it"},
	{name: "memory", in: []string{"memory", "embed"}, not: []string{"engines", "retriever"}, why: "adapters do not import each other"},
	{
		name: "elasticsearch", in: []string{""}, but: []string{"retriever/elastic"}, tests: true,
		not: []string{"github.com/elastic"}, why: "only retriever/elastic imports it",
	},
	{
		name: "qdrant", in: []string{""}, tests: true,
		but: []string{"retriever/qdrant", "internal/testkit/storetest"},
		not: []string{"github.com/qdrant/go-client"}, why: "only retriever/qdrant imports it",
	},
	{
		name: "postgres", in: []string{""}, tests: true,
		but: []string{"memory", "batch/table", "batch/internal/queue", "internal/testkit/storetest"},
		not: []string{"github.com/jackc/pgx"}, why: "only memory/postgres, batch/table and batch/internal/queue import it",
	},
	{
		name: "sqlite", in: []string{""}, tests: true, but: []string{"memory", "batch/table", "batch/internal/queue", "internal/sidecar/state"},
		not: []string{"modernc.org/sqlite"}, why: "only what keeps its data in a file imports it",
	},
	{
		name: "settings", in: []string{""}, but: []string{"cmd", "internal/sidecar/.", "internal/sidecar/server", "internal/sidecar/settings"},
		not: []string{"internal/sidecar/settings"}, why: "the parts of the sidecar get what they need as options",
	},
	{
		name: "command-line", in: []string{""}, but: []string{"cmd"}, tests: true,
		not: []string{"cmd", "github.com/spf13/cobra"}, why: "cmd wires the parts, nothing imports it, and only it knows the command line",
	},
}

// within reports whether the package is one of those that a rule's path names.
func within(path, pkg string) bool {
	if first, _, _ := strings.Cut(path, "/"); !strings.Contains(first, ".") {
		path = strings.TrimSuffix(module+"/"+path, "/")
	}
	if whole, exact := strings.CutSuffix(path, "/."); exact {
		return pkg == whole
	}
	return pkg == path || strings.HasPrefix(pkg, path+"/")
}

func anyWithin(paths []string, pkg string) bool {
	return slices.ContainsFunc(paths, func(path string) bool { return within(path, pkg) })
}

// broken returns the rules that the import breaks.
func broken(pkg, imported string, inTest bool) []string {
	var out []string
	first, _, _ := strings.Cut(imported, "/")
	standard := !strings.Contains(first, ".")
	for _, r := range rules {
		if inTest && !r.tests || !anyWithin(r.in, pkg) || anyWithin(r.but, pkg) {
			continue
		}
		if r.only != nil && !standard && !anyWithin(r.only, imported) || anyWithin(r.not, imported) {
			out = append(out, fmt.Sprintf("%s: %s imports %s (%s)", r.name, pkg, imported, r.why))
		}
	}
	return out
}

// The rules bite: each pair is an import that must not be, or one that may.
func TestRulesOfImports(t *testing.T) {
	for _, x := range []struct {
		pkg, imported string
		inTest        bool
		want          string // the rule; empty: none
	}{
		{"contextpilot", "github.com/tmc/langchaingo/schema", false, "core"},
		{"contextpilot", "github.com/blevesearch/bleve/v2", false, "core"},
		{"contextpilot/internal/tree", module + "/internal/prompt/tokens", false, "core-internal"},
		{"conversation", "github.com/tmc/langchaingo/schema", false, "conversation"},
		{"conversation", "github.com/tidwall/gjson", false, "conversation"},
		{"conversation/conversationtest", module + "/conversation", false, "conversation-reader"},
		{"stabilise", "github.com/tmc/langchaingo/schema", false, "stabilise"},
		{"engines", module + "/retriever/bleve", false, "engines"},
		{"engines", "github.com/tmc/langchaingo/schema", true, "engines-without-framework"},
		{"engines", module + "/internal/lab/trace", false, "product-without-lab"},
		{"engines", module + "/internal/sidecar/tenant", false, "libraries-without-server"},
		{"retriever/bleve", module + "/engines", false, "retriever"},
		{"retriever/bleve", "github.com/spf13/cobra", false, "command-line"},
		{"internal/sidecar/proxy", module + "/internal/sidecar/settings", false, "settings"},
		{"internal/sidecar/proxy", module + "/internal/lab/trace", false, "product-without-lab"},
		{"internal/sidecar/proxy", "github.com/tmc/langchaingo/llms", true, "internal"},
		{"memory", module + "/internal/testkit", false, "product-without-lab"},
		{"memory", module + "/retriever", false, "memory"},
		{"ragpilottest", module + "/contextpilot", false, "ragpilottest"},
		{"prefixdiff", module + "/contextpilot", false, "prefixdiff"},
		{"citation", module + "/engines", false, "citation"},
		{"batch/table", module + "/engines", false, "batch-table"},
		{"batch/table", "github.com/qdrant/go-client/qdrant", false, "qdrant"},
		{"batch", "github.com/jackc/pgx/v5", true, "postgres"},
		{"batch", "modernc.org/sqlite", false, "sqlite"},
		{"batch", "github.com/elastic/go-elasticsearch/v8", true, "elasticsearch"},
		{"batch/internal/queue", module + "/batch/table", false, "batch-queue"},
		{"batch/internal/dispatch", "github.com/riverqueue/river", false, "batch-dispatch"},
		{"examples/batch", module + "/internal/prompt/tokens", false, "examples"},

		{"contextpilot", "encoding/json", false, ""},
		{"contextpilot", module + "/internal/paper", false, ""},
		{"contextpilot", module + "/internal/testkit", true, ""},
		{"engines", module + "/retriever/bleve", true, ""},
		{"engines/langchain", "github.com/tmc/langchaingo/llms", false, ""},
		{"memory/postgres", "github.com/jackc/pgx/v5", false, ""},
		{"cmd/ragpilot", "github.com/spf13/cobra", false, ""},
		{"internal/sidecar", module + "/internal/sidecar/settings", false, ""},
		{"retriever/elastic", "github.com/elastic/elastic-transport-go/v8/elastictransport", false, ""},
	} {
		got := broken(module+"/"+x.pkg, x.imported, x.inTest)
		named := slices.ContainsFunc(got, func(what string) bool { return strings.HasPrefix(what, x.want+": ") })
		if named != (x.want != "") || x.want == "" && len(got) > 0 {
			t.Errorf("%s importing %s: %q, want %q", x.pkg, x.imported, got, x.want)
		}
	}
	for _, r := range rules {
		if len(r.in) == 0 || (r.only == nil) == (r.not == nil) {
			t.Errorf("the rule %s concerns no one, or does not say what is allowed or forbidden", r.name)
		}
	}
}

// A listed package is what go list says of it.
type listed struct {
	ImportPath, Name, Dir              string
	Imports, TestImports, XTestImports []string
	GoFiles, TestGoFiles, XTestGoFiles []string
	Standard                           bool
}

// fields are what go list is asked for. Without them it also finds out what is stale, which is slow.
const fields = "ImportPath,Name,Dir,Imports,TestImports,XTestImports,GoFiles,TestGoFiles,XTestGoFiles,Standard"

// list runs go list without cgo, unless the environment env says otherwise, in the module's folder. It looks at each file itself as well, so
// that "go test" does not take an earlier result where one has changed.
func list(t *testing.T, env []string, args ...string) []listed {
	t.Helper()
	if err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if ext := filepath.Ext(path); err == nil && (ext == ".go" || ext == ".mod" || ext == ".sum") {
			_, err = os.Stat(path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-json=" + fields}, args...)...)
	cmd.Dir, cmd.Env = "..", append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %v: %v\n%s", args, err, &stderr)
	}
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// everything is this module's packages with the files of all build tags.
func everything(t *testing.T) []listed {
	return list(t, []string{"CGO_ENABLED=1"}, "-tags", "cuda,stores,invariants", "./...")
}

func TestDirectionOfImports(t *testing.T) {
	checked := 0
	for _, p := range everything(t) {
		for _, imported := range p.Imports {
			for _, what := range broken(p.ImportPath, imported, false) {
				t.Error(what)
			}
			checked++
		}
		for _, imported := range slices.Concat(p.TestImports, p.XTestImports) {
			for _, what := range broken(p.ImportPath, imported, true) {
				t.Error(what, "in a test")
			}
		}
	}
	if checked < 1000 {
		t.Errorf("%d imports were checked", checked)
	}
}

// Adapters are modules of their own, which use what users can.
func TestAdaptersImportNoInternalPackage(t *testing.T) {
	files, err := filepath.Glob("../adapters/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	deeper, err := filepath.Glob("../adapters/*/*/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, deeper...) {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range parsed.Imports {
			if path, _ := strconv.Unquote(spec.Path.Value); within("internal", path) {
				t.Errorf("%s imports %s", file, path)
			}
		}
	}
}

// What a program with the core, a retriever and langchaingo's models compiles: it grows only on purpose, and has the client of no store,
// browser or collector. Packages of the standard library are counted as well.
func TestLightDependencies(t *testing.T) {
	const most = 293
	heavy := []string{
		"google.golang.org/grpc", "github.com/prometheus", "go.opentelemetry.io/otel/sdk", "github.com/redis", "modernc.org", "github.com/elastic",
		"github.com/qdrant", "github.com/jackc/pgx", "github.com/blevesearch", "github.com/chromedp",
	}
	deps := list(t, nil, "-deps", "./contextpilot", "./retriever", "./engines/langchain")
	for _, p := range deps {
		if anyWithin(heavy, p.ImportPath) {
			t.Errorf("contextpilot, retriever or engines/langchain depends on %s", p.ImportPath)
		}
	}
	if len(deps) > most {
		t.Errorf("contextpilot, retriever and engines/langchain depend on %d packages, want at most %d", len(deps), most)
	}
	foreign := []string{"github.com/zeebo/xxh3", "github.com/klauspost/cpuid/v2"} // the first brings the second
	for _, p := range list(t, nil, "-deps", "./contextpilot") {
		own := within("contextpilot", p.ImportPath) || within("internal", p.ImportPath)
		if !p.Standard && !own && !anyWithin(foreign, p.ImportPath) {
			t.Errorf("contextpilot depends on %s", p.ImportPath)
		}
	}
}

// Without the tag "stores" no dependency is Elasticsearch's client, which has 864 packages, and no test imports it.
func TestOfficialClientIsNotCompiled(t *testing.T) {
	all := list(t, nil, "-tags=", "-deps", "./...")
	for _, p := range all {
		for _, path := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if within("github.com/elastic/go-elasticsearch", path) {
				t.Errorf("%s imports %s", p.ImportPath, path)
			}
		}
	}
	if len(all) < 1000 {
		t.Errorf("%d packages were listed", len(all))
	}
}

// Every package that others can import explains itself and shows its use.
func TestPublicPackagesExplainThemselves(t *testing.T) {
	for _, p := range list(t, nil, "./...") {
		if p.Name == "main" || len(p.GoFiles) == 0 || slices.Contains(strings.Split(p.ImportPath, "/"), "internal") {
			continue
		}
		if !slices.Contains(p.GoFiles, "doc.go") {
			t.Errorf("%s lacks doc.go", p.ImportPath)
		}
		example := slices.ContainsFunc(slices.Concat(p.TestGoFiles, p.XTestGoFiles), func(name string) bool {
			text, err := os.ReadFile(filepath.Join(p.Dir, name))
			return err == nil && bytes.Contains(text, []byte("\nfunc Example"))
		})
		if !example {
			t.Errorf("%s lacks an Example", p.ImportPath)
		}
	}
}
