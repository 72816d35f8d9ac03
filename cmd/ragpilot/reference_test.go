package main

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ragpilot/ragpilot/internal/sidecar"
	"github.com/ragpilot/ragpilot/internal/sidecar/server"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

var update = flag.Bool("update", false, "write the tables of docs/reference.md again")

const reference = "../../docs/reference.md"

// TestReference: the tables of docs/reference.md are what the code says.
func TestReference(t *testing.T) {
	raw, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	for name, want := range map[string]string{"settings": settingsTable(t), "commands": commandsTable(), "metrics": metricsTable(t)} {
		begin, end := "<!-- "+name+": begin -->\n", "<!-- "+name+": end -->"
		before, rest, ok := strings.Cut(page, begin)
		got, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			t.Fatalf("%s lacks the marks of %s", reference, name)
		}
		if got != want && !*update {
			t.Errorf("%s: the table of %s is not what the code says; go test ./cmd/ragpilot -run TestReference -update writes it", reference, name)
		}
		page = before + begin + want + end + after
	}
	if *update {
		if err := os.WriteFile(reference, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// settingsTable has a row for each field of the configuration, in its order.
func settingsTable(t *testing.T) string {
	t.Helper()
	docs, names, flags := fieldComments(t), map[string]string{}, fieldFlags(t)
	var b strings.Builder
	b.WriteString("| setting | flag | default | live | |\n|---|---|---|---|---|\n")
	leaves(reflect.TypeFor[settings.Config](), "", func(f reflect.StructField, of reflect.Type, path string) {
		names[f.Name] = cmp.Or(names[f.Name], path)
		names[of.Name()+"."+f.Name] = path
	})
	leaves(reflect.TypeFor[settings.Config](), "", func(f reflect.StructField, of reflect.Type, path string) {
		flag := ""
		if named := flags[path]; len(named) > 0 {
			flag = "`--" + strings.Join(named, "` `--") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", path, flag, defaultOf(path), live(path), settingText(docs, of.Name(), f.Name, names))
	})
	return b.String()
}

// leaves calls f with the fields that hold a value, with the struct they are of and their path in the file.
func leaves(of reflect.Type, prefix string, f func(field reflect.StructField, of reflect.Type, path string)) {
	for field := range of.Fields() {
		path := prefix + field.Tag.Get("yaml")
		switch kind := field.Type; {
		case kind.Kind() == reflect.Struct:
			leaves(kind, path+".", f)
		case kind.Kind() == reflect.Slice && kind.Elem().Kind() == reflect.Struct:
			leaves(kind.Elem(), path+"[].", f)
		default:
			f(field, of, path)
		}
	}
}

// fieldComments returns the comments of the fields of package settings, by struct and name.
func fieldComments(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../internal/sidecar/settings/*.go")
	if err != nil {
		t.Fatal(err)
	}
	docs := map[string]string{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range s.Fields.List {
					for _, name := range f.Names {
						docs[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
					}
				}
			}
			return false
		})
	}
	return docs
}

var (
	// internals are what a comment says to readers of the code.
	internals = regexp.MustCompile(`[;,]? (see )?\[[A-Za-z.]+\]( clears it| hides the password)?|,? see (profile\.Load|contextpilot\.PolicyNames|package \w+)`)
	// mentioned is the name of a field within a sentence.
	mentioned = regexp.MustCompile(`([a-z0-9,;:("] )((?:\w+\.)?[A-Z]\w+)`)
)

// settingText makes the comment of a field a cell: without its name in front, and with the names of other fields as they stand in the file.
func settingText(docs map[string]string, of, name string, names map[string]string) string {
	comment := internals.ReplaceAllString(docs[of+"."+name], "")
	for _, lead := range []string{name + " is ", name + " are ", name + ": ", name + " "} {
		if rest, ok := strings.CutPrefix(comment, lead); ok {
			comment = rest
			break
		}
	}
	comment = mentioned.ReplaceAllStringFunc(comment, func(found string) string {
		before, word := found[:2], found[2:]
		last := word[strings.LastIndex(word, ".")+1:]
		if path := cmp.Or(names[of+"."+last], names[last]); path != "" && last != strings.ToUpper(last) {
			return before + "`" + path + "`"
		}
		return found
	})
	return strings.ReplaceAll(comment, "|", "\\|")
}

// fieldFlags returns the flags that set each field: it gives each flag alone, and looks at what has changed.
func fieldFlags(t *testing.T) map[string][]string {
	t.Helper()
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(serveFlags).register(all)
	set := map[string][]string{}
	all.VisitAll(func(of *pflag.Flag) {
		if of.Name == "config" {
			return
		}
		flags, c := pflag.NewFlagSet("", pflag.ContinueOnError), settings.Default()
		f := serveFlags{config: settings.Default()}
		f.register(flags)
		value := map[string]string{
			"bool": strconv.FormatBool(of.DefValue != "true"), "duration": "7s", "int": "7", "int64": "7", "float64": "0.7",
		}[of.Value.Type()]
		switch of.Name {
		case "port":
			value = "7"
		case "listen":
			value = "h:7"
		case "stabilise":
			value = "tools,schemas,volatile,memories"
		case "stabilise-place":
			value = "user"
		case "hold":
			value = "off"
		}
		if err := flags.Set(of.Name, cmp.Or(value, "probe")); err != nil {
			t.Fatalf("--%s: %v", of.Name, err)
		}
		if err := f.apply(flags, &c); err != nil {
			t.Fatalf("--%s: %v", of.Name, err)
		}
		before := valuesOf(settings.Default())
		changed := 0
		for path, v := range valuesOf(c) {
			probed := v != before[path]
			if strings.Contains(path, "[].") {
				probed = slices.Contains([]string{"probe", "7", "true"}, v)
			}
			if probed {
				set[path] = append(set[path], of.Name)
				changed++
			}
		}
		if changed == 0 {
			t.Errorf("--%s sets no field", of.Name)
		}
	})
	for path := range set {
		slices.Sort(set[path])
	}
	return set
}

// valuesOf returns the values of a configuration as texts, by path.
func valuesOf(c settings.Config) map[string]string {
	values := map[string]string{}
	var walk func(v reflect.Value, prefix string)
	walk = func(v reflect.Value, prefix string) {
		for i := range v.NumField() {
			path, field := prefix+v.Type().Field(i).Tag.Get("yaml"), v.Field(i)
			switch kind := field.Type(); {
			case kind.Kind() == reflect.Struct:
				walk(field, path+".")
			case kind.Kind() == reflect.Slice && kind.Elem().Kind() == reflect.Struct:
				for k := range field.Len() {
					walk(field.Index(k), path+"[].")
				}
			default:
				values[path] = fmt.Sprint(revealed(field))
			}
		}
	}
	walk(reflect.ValueOf(c), "")
	return values
}

// revealed is a value that may be a secret.
func revealed(v reflect.Value) any {
	if secret, ok := reflect.TypeAssert[settings.Secret](v); ok {
		return secret.Reveal()
	}
	return v.Interface()
}

// defaultOf is the default of a field as a person writes it.
func defaultOf(path string) string {
	value := valuesOf(settings.Default())[path]
	n, err := strconv.ParseInt(value, 10, 64)
	switch d, timeErr := time.ParseDuration(value); {
	case value == "" || value == "[]" || value == "0" || value == "0s" || value == "false":
		return ""
	case err == nil && strings.HasSuffix(path, "_bytes"):
		for _, unit := range []string{"", " KiB", " MiB", " GiB"} {
			if n%1024 != 0 || n == 0 {
				return fmt.Sprint(n) + unit
			}
			if unit == " GiB" {
				return fmt.Sprint(n) + unit
			}
			n /= 1024
		}
		return value
	case timeErr == nil && err != nil:
		return strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(d.String())
	}
	return "`" + value + "`"
}

// live says whether a field changes on SIGHUP.
func live(path string) string {
	top, _, _ := strings.Cut(path, "[]")
	before, after := settings.Default(), settings.Default()
	before.TLS.Cert, before.TLS.Key = "a", "a"
	after.TLS.Cert, after.TLS.Key = "a", "a"
	field := reflect.ValueOf(&after).Elem()
	for name := range strings.SplitSeq(top, ".") {
		of := field.Type()
		for i := range of.NumField() {
			if of.Field(i).Tag.Get("yaml") == name {
				field = field.Field(i)
				break
			}
		}
	}
	switch field.Kind() {
	case reflect.Bool:
		field.SetBool(!field.Bool())
	case reflect.String:
		field.SetString(field.String() + "b")
	case reflect.Slice:
		field.Set(reflect.MakeSlice(field.Type(), 1, 1))
	case reflect.Float64:
		field.SetFloat(0.7)
	default:
		field.SetInt(field.Int() + 7)
	}
	if _, changed, _ := before.TakeOver(after); len(changed) > 0 {
		return "yes"
	}
	return ""
}

// commandsTable has a row for each command that does something.
func commandsTable() string {
	var b strings.Builder
	b.WriteString("| command | |\n|---|---|\n")
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Runnable() {
			fmt.Fprintf(&b, "| `%s` | %s |\n", strings.ReplaceAll(strings.TrimSuffix(c.UseLine(), " [flags]"), "|", "\\|"), c.Short)
		}
		for _, below := range c.Commands() {
			walk(below)
		}
	}
	walk(newRoot())
	return b.String()
}

var described = regexp.MustCompile(`fqName: ("(?:[^"\\]|\\.)*"), help: ("(?:[^"\\]|\\.)*"), .*constLabels: \{(.*?)\}, variableLabels: \{(.*?)\}`)

// metricsTable has a row for each metric of the program's own, with what it needs.
func metricsTable(t *testing.T) string {
	t.Helper()
	type metric struct {
		help, with string
		labels     []string
	}
	found := map[string]*metric{}
	redis := miniredis.RunT(t)
	for _, c := range []struct {
		with   string
		change func(c *settings.Config)
	}{
		{"", func(*settings.Config) {}},
		{"`state_dir`", func(c *settings.Config) { c.StateDir = t.TempDir() }},
		{"`trace.endpoint`", func(c *settings.Config) { c.Trace.Endpoint = "http://127.0.0.1:1" }},
		{"`shared_state`", func(c *settings.Config) { c.SharedState = settings.Secret("redis://" + redis.Addr()) }},
		{"`cloud_provider`", func(c *settings.Config) { c.CloudProvider = "anthropic" }},
		{"`cloud_provider`, `prices`", func(c *settings.Config) {
			c.CloudProvider, c.Currency, c.Prices = "anthropic", "USD", []settings.Price{{Model: "*", Input: 1}}
		}},
	} {
		cfg, registry := settings.Default(), prometheus.NewRegistry()
		c.change(&cfg)
		log := slog.New(slog.DiscardHandler)
		api, err := sidecar.New(cfg, sidecar.Options{Registry: registry, Log: log})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := server.New(cfg, api, server.Options{Logger: log, Registry: registry}); err != nil {
			t.Fatal(err)
		}
		descs := make(chan *prometheus.Desc)
		go func() {
			registry.Describe(descs)
			close(descs)
		}()
		for d := range descs {
			m := described.FindStringSubmatch(d.String())
			if m == nil {
				t.Fatalf("no metric: %s", d)
			}
			name, _ := strconv.Unquote(m[1])
			help, _ := strconv.Unquote(m[2])
			one := found[name]
			if one == nil {
				one = &metric{help: help, with: c.with}
				found[name] = one
			}
			for label := range strings.SplitSeq(m[3]+","+m[4], ",") {
				label, _, _ = strings.Cut(label, "=")
				if label = strings.Trim(label, `"{} `); label != "" && !slices.Contains(one.labels, label) {
					one.labels = append(one.labels, label)
				}
			}
		}
		if err := api.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var b strings.Builder
	b.WriteString("| metric | labels | with | |\n|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(found)) {
		labels := ""
		if m := found[name]; len(m.labels) > 0 {
			labels = "`" + strings.Join(m.labels, "` `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, labels, found[name].with, strings.ReplaceAll(found[name].help, "|", "\\|"))
	}
	return b.String()
}
