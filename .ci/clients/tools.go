package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Prop is a parameter of a tool.
type Prop struct {
	Name, Type, Description string
	Enum                    []string
	Required                bool
}

// Tool is a tool of a program.
type Tool struct {
	Name, Description string
	Props             []Prop
}

// Schema is the parameters' schema as Go maps, which encoding/json writes with sorted keys.
func (t Tool) Schema() map[string]any {
	props, required := map[string]any{}, []string{}
	for _, p := range t.Props {
		one := map[string]any{"type": p.Type, "description": p.Description}
		if p.Enum != nil {
			one["enum"] = p.Enum
		}
		props[p.Name] = one
		if p.Required {
			required = append(required, p.Name)
		}
	}
	return map[string]any{"type": "object", "properties": props, "required": required}
}

// RawProps writes the properties in an order, as a program does that writes JSON by hand while it ranges over a map.
func (t Tool) RawProps(order []int) json.RawMessage {
	var b bytes.Buffer
	for i, n := range order {
		sep := ","
		if i == 0 {
			sep = "{"
		}
		p := t.Props[n]
		fmt.Fprintf(&b, "%s%q:{%q:%q,%q:%q", sep, p.Name, "type", p.Type, "description", p.Description)
		if p.Enum != nil {
			fmt.Fprintf(&b, ",%q:%s", "enum", must(json.Marshal(p.Enum)))
		}
		b.WriteByte('}')
	}
	b.WriteByte('}')
	return b.Bytes()
}

// RawSchema is Schema with its properties in an order.
func (t Tool) RawSchema(order []int) map[string]any {
	s := t.Schema()
	s["properties"] = t.RawProps(order)
	return s
}

// InOrder returns the numbers below n.
func InOrder(n int) []int {
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	return p
}

// Pick returns the items of an order.
func Pick[T any](items []T, order []int) []T {
	out := make([]T, len(order))
	for i, n := range order {
		out[i] = items[n]
	}
	return out
}

var deskTools = []Tool{
	{"find_order", "Finds an order of a customer by its number or by the e-mail address that was used.", []Prop{
		{Name: "number", Type: "string", Description: "The number on the invoice, such as B-20417."},
		{Name: "email", Type: "string", Description: "The address of the account."},
		{Name: "since", Type: "string", Description: "Only orders after this day."},
		{Name: "status", Type: "string", Description: "Only orders in this state.", Enum: []string{"open", "sent", "returned"}},
	}},
	{"stock", "Says how many pieces of a part lie in which shop.", []Prop{
		{Name: "sku", Type: "string", Description: "The number of the part.", Required: true},
		{Name: "shop", Type: "string", Description: "One shop; all if it is absent."},
		{Name: "reserved", Type: "boolean", Description: "Whether to count reserved pieces."},
	}},
	{"book_workshop", "Books a place in a workshop for a repair or a yearly inspection.", []Prop{
		{Name: "shop", Type: "string", Description: "The shop.", Required: true},
		{Name: "day", Type: "string", Description: "The day of the visit.", Required: true},
		{
			Name: "work", Type: "string", Description: "What is to be done.", Required: true,
			Enum: []string{"inspection", "brakes", "battery", "motor"},
		},
		{Name: "loan_bike", Type: "boolean", Description: "Whether the customer needs a bike for the day."},
		{Name: "note", Type: "string", Description: "What the mechanic should know."},
	}},
	{"refund", "Starts a refund. The customer gets an e-mail about it.", []Prop{
		{Name: "order", Type: "string", Description: "The order.", Required: true},
		{Name: "amount", Type: "number", Description: "How much, in euros.", Required: true},
		{Name: "reason", Type: "string", Description: "Why, in one sentence.", Required: true},
	}},
}

var opsTools = []Tool{
	{"list_pods", "Lists the pods of a namespace with their state and their restarts.", []Prop{
		{Name: "namespace", Type: "string", Description: "The namespace.", Required: true},
		{Name: "selector", Type: "string", Description: "Only pods with these labels."},
		{Name: "limit", Type: "integer", Description: "At most so many."},
	}},
	{"read_logs", "Returns the last lines that a container has written.", []Prop{
		{Name: "pod", Type: "string", Description: "The pod.", Required: true},
		{Name: "container", Type: "string", Description: "The container, if the pod has several."},
		{Name: "lines", Type: "integer", Description: "How many lines."},
		{Name: "previous", Type: "boolean", Description: "Whether to read those of the container before the last restart."},
	}},
	{"query_metrics", "Asks the metrics store and returns a table.", []Prop{
		{Name: "query", Type: "string", Description: "The query.", Required: true},
		{Name: "from", Type: "string", Description: "The begin of the range."},
		{Name: "to", Type: "string", Description: "The end of the range."},
		{Name: "step", Type: "string", Description: "The distance of two points."},
	}},
	{"restart", "Restarts a deployment. Ask before you use it.", []Prop{
		{Name: "deployment", Type: "string", Description: "The deployment.", Required: true},
		{Name: "namespace", Type: "string", Description: "Its namespace.", Required: true},
	}},
	{"open_incident", "Opens an incident and calls the people on duty.", []Prop{
		{Name: "title", Type: "string", Description: "What is broken, in one line.", Required: true},
		{Name: "severity", Type: "string", Description: "How bad it is.", Required: true, Enum: []string{"low", "high", "critical"}},
		{Name: "service", Type: "string", Description: "The service.", Required: true},
	}},
}

var travelTools = []Tool{
	{"search_trains", "Searches trains between two stations.", []Prop{
		{Name: "from", Type: "string", Description: "The station of departure.", Required: true},
		{Name: "to", Type: "string", Description: "The station of arrival.", Required: true},
		{Name: "leave_after", Type: "string", Description: "The earliest departure."},
		{Name: "changes", Type: "integer", Description: "At most so many changes."},
		{Name: "class", Type: "string", Description: "The class.", Enum: []string{"first", "second"}},
	}},
	{"search_hotels", "Searches hotels near a place.", []Prop{
		{Name: "near", Type: "string", Description: "The place.", Required: true},
		{Name: "nights", Type: "integer", Description: "How many nights.", Required: true},
		{Name: "stars", Type: "integer", Description: "At least so many stars."},
		{Name: "price", Type: "number", Description: "The highest price of a night."},
	}},
	{"weather", "Returns the forecast of a place for the next days.", []Prop{
		{Name: "place", Type: "string", Description: "The place.", Required: true},
		{Name: "days", Type: "integer", Description: "How many days."},
		{Name: "units", Type: "string", Description: "The units.", Enum: []string{"metric", "imperial"}},
	}},
}
