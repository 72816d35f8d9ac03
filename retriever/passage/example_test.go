package passage_test

import (
	"fmt"

	"github.com/ragpilot/ragpilot/retriever/passage"
)

// Two neighbours and a chunk of another document. The overlap goes to the chunk in which its sentences begin.
func Example() {
	chunks := []passage.Chunk{
		{Doc: "manual@3", Index: 5, Start: -1, Text: "They start by themselves. Wait a minute before you open the valve."},
		{Doc: "motors@1", Index: 0, Start: -1, Text: "Motors drive pumps."},
		{Doc: "manual@3", Index: 4, Start: -1, Text: "Pumps move water. They start by themselves. Wait a minute bef"},
	}
	for _, form := range []passage.Form{passage.Cut, passage.Join} {
		for _, p := range passage.Make(chunks, passage.Options{Form: form}) {
			fmt.Println(p.Chunks, p.Text)
		}
		fmt.Println()
	}
	// Output:
	// [0] They start by themselves. Wait a minute before you open the valve.
	// [1] Motors drive pumps.
	// [2] Pumps move water.
	//
	// [2 0] Pumps move water. They start by themselves. Wait a minute before you open the valve.
	// [1] Motors drive pumps.
}

func ExampleID() {
	id := passage.ID{Doc: "handbook/pumps.md", Version: "7f3a", Chunk: 12}
	fmt.Println(id)
	back, err := passage.ParseID("handbook/pumps.md@7f3a#12")
	fmt.Println(back == id, err)
	// Output:
	// handbook/pumps.md@7f3a#12
	// true <nil>
}

func ExampleSentences() {
	for at, s := range passage.Sentences("Dr. Smith is 3.5 km away. 雨が降る。行こう！") {
		fmt.Printf("%d %q\n", at, s)
	}
	// Output:
	// 0 "Dr. Smith is 3.5 km away. "
	// 26 "雨が降る。"
	// 41 "行こう！"
}
