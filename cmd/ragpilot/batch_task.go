package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ragpilot/ragpilot/batch"
	"github.com/ragpilot/ragpilot/batch/table"
	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/retriever/bleve"
)

// batchTaskFlags say what is asked of each row.
type batchTaskFlags struct {
	prompt, promptFile, system string
	columns                    string
	use                        []string
	blocks, examples, schema   string
	docs                       string
	search                     []string
	k, maxTokens               int
	temperature                float64
	answer                     string
}

func (f *batchTaskFlags) registerTask(flags *pflag.FlagSet) {
	flags.StringVar(&f.prompt, "prompt", "", "`TEXT` of the prompt, with columns in double braces: {{city}}")
	flags.StringVar(&f.promptFile, "prompt-file", "", "`FILE` with the text of the prompt")
	flags.StringVar(&f.system, "system", "", "`TEXT` of the system message")
	flags.StringVar(&f.columns, "columns", "",
		"`per-row|fixed|as-is`: each row has its own order of cells, all rows have the same best one, or that of the prompt; empty: "+
			string(batch.DefaultOrder))
	flags.StringSliceVar(&f.use, "use", nil, "`COLUMNS` that {{*}} stands for, separated by commas; none: all that the prompt does not name")
	flags.StringVar(&f.blocks, "blocks", "", "`COLUMN` of retrieved blocks: a text, or a JSON list of texts or of objects with a text")
	flags.StringVar(&f.docs, "docs", "", "folder of documents, of which each row gets the best blocks: `DIR`")
	flags.StringSliceVar(&f.search, "search", nil, "`COLUMNS` to search --docs for; none: all")
	flags.IntVar(&f.k, "k", 5, "`N` blocks of --docs for each row")
	flags.StringVar(&f.examples, "examples", "", "`FILE` with rows and their answers in the column --answer, to be shown in each prompt")
	flags.StringVar(&f.schema, "schema", "", "`FILE` with a JSON schema that answers must follow")
	flags.IntVar(&f.maxTokens, "max-tokens", batch.DefaultMaxTokens, "most `TOKENS` of an answer")
	flags.Float64Var(&f.temperature, "temperature", 0, "sampling temperature `T`; 0: the most likely answer")
	flags.StringVar(&f.answer, "answer", "answer", "`NAME` of the column for answers")
}

// checkTask refuses what cannot be before anything is read.
func (f *batchTaskFlags) checkTask() error {
	if f.prompt != "" && f.promptFile != "" {
		return fmt.Errorf("--prompt-file %s: --prompt is given too", f.promptFile)
	}
	if f.docs == "" && len(f.search) > 0 {
		return fmt.Errorf("--search %s: needs --docs", strings.Join(f.search, ","))
	}
	return checkLimits(limited{"max-tokens", f.maxTokens, 1}, limited{"k", f.k, 1})
}

// task makes the task of the flags. done closes the index of --docs.
func (f *batchTaskFlags) task(ctx context.Context, t *table.Table, model string, progress io.Writer) (
	task batch.Task, done func() error, err error,
) {
	done = func() error { return nil }
	if t.Format == table.OpenAI {
		if model != "" {
			return task, done, fmt.Errorf("--model %s: each line of an OpenAI batch file has its own", model)
		}
		return task, done, nil
	}
	if f.prompt == "" && f.promptFile == "" {
		return task, done, errors.New("--prompt is required: what is asked of each row")
	}
	task = batch.Task{
		Prompt: batch.Prompt{System: f.system, Text: f.prompt, Columns: f.use, Blocks: f.blocks, Order: batch.Order(f.columns)},
		Model:  model, MaxTokens: f.maxTokens, Temperature: f.temperature,
	}
	if f.promptFile != "" {
		text, err := os.ReadFile(f.promptFile)
		if err != nil {
			return task, done, fmt.Errorf("--prompt-file: %w", err)
		}
		task.Prompt.Text = strings.TrimPrefix(string(text), "\ufeff")
	}
	if f.schema != "" {
		if task.Schema, err = os.ReadFile(f.schema); err != nil {
			return task, done, fmt.Errorf("--schema: %w", err)
		}
		if !json.Valid(task.Schema) {
			return task, done, fmt.Errorf("--schema %s: it is not JSON", f.schema)
		}
	}
	if f.examples != "" {
		if task.Prompt.Examples, err = f.readExamples(ctx); err != nil {
			return task, done, fmt.Errorf("--examples: %w", err)
		}
	}
	if f.docs != "" {
		for _, c := range f.search {
			if _, err := t.Column(c); err != nil {
				return task, done, fmt.Errorf("--search: %w", err)
			}
		}
		index, err := bleve.Open(ctx, bleve.Options{Dir: f.docs, Include: bleve.Formats(), Progress: bleve.Bar(progress)})
		if err != nil {
			return task, done, fmt.Errorf("--docs: %w", err)
		}
		task.Retrieve, done = f.retriever(index, t.Columns), index.Close
	}
	return task, done, nil
}

// retriever returns what searches the documents for the cells of a row.
func (f *batchTaskFlags) retriever(index *bleve.Index, columns []string) func(context.Context, map[string]string) (
	[]contextpilot.Block, error,
) {
	if len(f.search) > 0 {
		columns = f.search
	}
	return func(ctx context.Context, cells map[string]string) ([]contextpilot.Block, error) {
		question := make([]string, len(columns))
		for i, c := range columns {
			question[i] = cells[c]
		}
		return index.Search(ctx, strings.Join(question, " "), f.k)
	}
}

// readExamples reads rows with answers.
func (f *batchTaskFlags) readExamples(ctx context.Context) (examples []batch.Example, err error) {
	t, err := table.Open(ctx, f.examples, table.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	answer, err := t.Column(f.answer)
	if err != nil {
		return nil, err
	}
	for row, err := range t.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		e := batch.Example{Cells: map[string]string{}, Answer: row.Cells[answer]}
		for i, cell := range row.Cells {
			if i != answer {
				e.Cells[t.Columns[i]] = cell
			}
		}
		examples = append(examples, e)
	}
	return examples, nil
}
