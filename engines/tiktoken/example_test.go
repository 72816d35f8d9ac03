package tiktoken_test

import (
	"fmt"

	"github.com/ragpilot/ragpilot/engines/tiktoken"
)

func Example() {
	tokenizer, err := tiktoken.New("gpt-4o")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(tokenizer.Encoding())
	fmt.Println(tokenizer.Count("hello world"))
	// Output:
	// o200k_base
	// 2
}
