package citation_test

import (
	"fmt"

	"github.com/ragpilot/ragpilot/citation"
	"github.com/ragpilot/ragpilot/contextpilot"
)

// Two turns of a conversation: the second answer cites a document of its own turn and one that it only refers to, in
// pieces as they come from an engine.
func Example() {
	pilot, _ := contextpilot.New(contextpilot.Config{})
	sources := citation.NewSources()
	pump := contextpilot.Block{ID: "pump.md", Text: "The pump feeds the boiler."}
	motor := contextpilot.Block{ID: "motor.md", Text: "The motor drives the pump."}

	first := pilot.Plan(contextpilot.Request{Session: "s", Query: "What is it?", Blocks: []contextpilot.Block{pump}})
	sources.Add(first)
	prior := []string{first.Prompt("What is it?"), "A pump [pump.md]."}
	second := pilot.Plan(contextpilot.Request{
		Session: "s", Query: "What drives it?", Blocks: []contextpilot.Block{motor, pump}, Prior: prior, Behind: first.End,
	})
	sources.Add(second)

	filter := citation.New(sources, citation.Options{})
	for _, piece := range []string{"The pump ", "[pu", "mp.md] has a motor [mo", "tor.md]."} {
		fmt.Print(filter.Push(piece))
	}
	fmt.Println(filter.End())
	for _, c := range filter.Citations() {
		d := c.Documents[0]
		fmt.Printf("%s: rank %d in turn %d, %q\n", c.Label, d.Rank, d.Turn, d.Block.Text)
	}
	// Output:
	// The pump [pump.md] has a motor [motor.md].
	// pump.md: rank 1 in turn 1, "The pump feeds the boiler."
	// motor.md: rank 1 in turn 2, "The motor drives the pump."
}

// Citations rewritten to links.
func ExampleOptions_rewrite() {
	sources := citation.NewSources()
	pilot, _ := contextpilot.New(contextpilot.Config{})
	sources.Add(pilot.Plan(contextpilot.Request{Blocks: []contextpilot.Block{{ID: "pump.md", Text: "All about pumps."}}}))

	filter := citation.New(sources, citation.Options{Rewrite: func(_ string, cited []citation.Citation) string {
		return fmt.Sprintf("(https://example.com/%s)", cited[0].Label)
	}})
	for _, piece := range []string{"See [pump", ".md], [sic]."} {
		fmt.Printf("%q ", filter.Push(piece))
	}
	fmt.Printf("%q\n", filter.End())
	// Output: "See " "(https://example.com/pump.md), [sic]." ""
}
