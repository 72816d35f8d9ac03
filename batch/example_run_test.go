package batch_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/ragpilot/ragpilot/batch"
)

// A function answers each row of a file, and the answers stand in a column of their own. Rows with the same prompt are asked once.
func ExampleFunc() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	complaints, answers := filepath.Join(dir, "complaints.csv"), filepath.Join(dir, "answers.csv")
	table := "number,complaint\n1,The chair broke\n2,I paid twice\n3,The chair broke\n"
	if err := os.WriteFile(complaints, []byte(table), 0o600); err != nil {
		log.Fatal(err)
	}

	// A chain of a framework, or a model, would stand here.
	engine := batch.Func("departments", func(_ context.Context, prompt string) (string, error) {
		if strings.Contains(prompt, "paid") {
			return "Accounting", nil
		}
		return "Repairs", nil
	})
	task := batch.Task{Prompt: batch.Prompt{Text: "Who handles this?\nComplaint: {{complaint}}\nDepartment:"}}
	w, err := batch.AnswerFile(context.Background(), complaints, answers, task, engine)
	if err != nil {
		log.Fatal(err)
	}
	text, err := os.ReadFile(answers)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d rows, %d without an answer\n%s", w.Rows, w.Failed, text)
	// Output:
	// 3 rows, 0 without an answer
	// number,complaint,answer
	// 1,The chair broke,Repairs
	// 2,I paid twice,Accounting
	// 3,The chair broke,Repairs
}
