package settings

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Decode reads YAML over base: what the text does not mention stays as it is, lists are replaced. It does not
// [Config.Validate].
//
// It is stricter than the strict mode of the YAML package, whose parser it uses: that mode ignores all of a mapping that
// has a key which is no string, cuts 1.5 to 1 for an integer, and cannot say which duration is wrong. Here a field that
// is unknown, given twice, of another type, or without a value is an error that names it with its line, and so are
// anchors, aliases, merges, tags, and a second document.
func Decode(text []byte, base Config) (Config, error) {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return base, syntaxError(err)
	}
	c, found := base.clone(), false
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if found {
			return base, fieldError(doc.Body, "", "a second document")
		}
		found = true
		if err := decodeStruct(doc.Body, reflect.ValueOf(&c).Elem(), ""); err != nil {
			return base, err
		}
	}
	return c, nil
}

// syntaxError keeps the parser's message and leaves out its excerpt of the text, which may show a key.
func syntaxError(err error) error {
	e, ok := errors.AsType[yaml.Error](err)
	if !ok || e.GetToken() == nil {
		return fmt.Errorf("%w: not YAML", ErrBadConfig)
	}
	return fmt.Errorf("%w: line %d: %s", ErrBadConfig, e.GetToken().Position.Line, e.GetMessage())
}

func fieldError(at ast.Node, path, problem string) error {
	line := 0
	if t := at.GetToken(); t != nil && t.Position != nil {
		line = t.Position.Line
	}
	if path != "" {
		problem = path + ": " + problem
	}
	return fmt.Errorf("%w: line %d: %s", ErrBadConfig, line, problem)
}

func decodeStruct(node ast.Node, into reflect.Value, path string) error {
	var pairs []*ast.MappingValueNode
	switch n := node.(type) {
	case *ast.NullNode:
		return nil // only comments below it
	case *ast.MappingNode:
		pairs = n.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{n}
	default:
		return fieldError(node, path, "want fields, found "+node.Type().YAMLName())
	}
	for _, pair := range pairs {
		name, ok := pair.Key.(*ast.StringNode)
		if !ok {
			return fieldError(pair.Key, path, "want the name of a field, found "+pair.Key.Type().YAMLName())
		}
		inner := name.Value
		if path != "" {
			inner = path + "." + inner
		}
		field, ok := fieldNamed(into, name.Value)
		if !ok {
			return fieldError(name, inner, "unknown field")
		}
		if err := decodeValue(pair.Value, field, inner); err != nil {
			return err
		}
	}
	return nil
}

func fieldNamed(v reflect.Value, name string) (reflect.Value, bool) {
	for f, value := range v.Fields() {
		if f.Tag.Get("yaml") == name {
			return value, true
		}
	}
	return reflect.Value{}, false
}

func decodeValue(node ast.Node, into reflect.Value, path string) error {
	switch into.Kind() {
	case reflect.Struct:
		return decodeStruct(node, into, path)
	case reflect.Slice:
		return decodeList(node, into, path)
	default:
		return decodeScalar(node, into, path)
	}
}

func decodeList(node ast.Node, into reflect.Value, path string) error {
	if _, ok := node.(*ast.NullNode); ok {
		return nil
	}
	list, ok := node.(*ast.SequenceNode)
	if !ok {
		return fieldError(node, path, "want a list, found "+node.Type().YAMLName())
	}
	if len(list.Values) == 0 {
		into.SetZero()
		return nil
	}
	made := reflect.MakeSlice(into.Type(), len(list.Values), len(list.Values))
	for i, item := range list.Values {
		if err := decodeValue(item, made.Index(i), fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	into.Set(made)
	return nil
}

func decodeScalar(node ast.Node, into reflect.Value, path string) error {
	want := ""
	switch value := into.Addr().Interface().(type) {
	case *time.Duration:
		if n, ok := node.(*ast.StringNode); ok {
			d, err := time.ParseDuration(n.Value)
			if err == nil {
				*value = d
				return nil
			}
		}
		want = "a duration such as 30s or 5m"
	case *string, *Secret:
		if text, ok := scalarText(node); ok {
			into.SetString(text)
			return nil
		}
		want = `text, "" for none`
	case *bool:
		if n, ok := node.(*ast.BoolNode); ok {
			*value = n.Value
			return nil
		}
		want = "true or false"
	case *float64:
		switch n := node.(type) {
		case *ast.FloatNode:
			*value = n.Value
			return nil
		case *ast.IntegerNode:
			if i, ok := integer(n); ok {
				*value = float64(i)
				return nil
			}
		}
		want = "a number"
	default: // int, int64
		if n, ok := node.(*ast.IntegerNode); ok {
			if i, ok := integer(n); ok && !into.OverflowInt(i) {
				into.SetInt(i)
				return nil
			}
		}
		want = "a whole number"
	}
	found := node.Type().YAMLName()
	if text, ok := scalarText(node); ok {
		found = fmt.Sprintf("%.40q", text)
	}
	return fieldError(node, path, fmt.Sprintf("want %s, found %s", want, found))
}

// scalarText returns what is written for a scalar; a text that looks like a number or a switch is a text too.
func scalarText(node ast.Node) (string, bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NanNode, *ast.InfinityNode:
		return n.GetToken().Value, true
	default:
		return "", false
	}
}

func integer(n *ast.IntegerNode) (int64, bool) {
	switch v := n.Value.(type) {
	case int64:
		return v, true
	case uint64:
		return int64(v), v <= 1<<63-1
	default:
		return 0, false
	}
}
