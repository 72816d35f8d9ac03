package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/internal/lab/demo"
)

func newWarm() *cobra.Command {
	var f chatFlags
	cmd := newCommand("warm", "Compute all blocks of a folder of documents once, for chat with --reuse blocks",
		`Warm cuts the documents into blocks as chat does, computes each behind the beginning of chat's prompts, and keeps the
keys and values in --cache-dir. chat with the same --docs, --cache-dir and --model, and with --reuse blocks or hybrid, then
answers without computing them. Blocks that are there already are not computed again, so that an interrupted run goes on.`, f.warm)
	flags := cmd.Flags()
	flags.StringVar(&f.docs, "docs", "", "folder of documents: text, Markdown, HTML, PDF; empty: a few short ones that are built in: `DIR`")
	flags.StringVar(&f.model, "model", "", "a GGUF file, or the name of a model that can be pulled: `MODEL`; empty: "+defaultModel)
	registerFiles(flags, &f.local)
	return cmd
}

func (f *chatFlags) warm(cmd *cobra.Command) (err error) {
	if f.local.CacheDir == "" {
		return errors.New(`--cache-dir "": want the folder that chat is started with`)
	}
	ctx := cmd.Context()
	index, err := f.index(ctx, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, index.Close()) }()
	blocks, err := index.Blocks(ctx)
	if err != nil {
		return err
	}
	path, err := modelFile(ctx, f.model, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	engine, err := openModel(path, f.local)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	if !engine.Stats().Disk.Writable {
		return fmt.Errorf("--cache-dir %s: another process writes to it", f.local.CacheDir)
	}
	began := time.Now()
	if err := warmBlocks(ctx, engine, blocks, cmd.ErrOrStderr()); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%d blocks, %d tokens computed in %.1f s\n", len(blocks), engine.Stats().PromptTokens,
		time.Since(began).Seconds())
	return nil
}

// warmBlocks computes the blocks one after the other, and shows how far it is.
func warmBlocks(ctx context.Context, engine *local.Engine, blocks []contextpilot.Block, progress io.Writer) error {
	pilot, err := contextpilot.New(contextpilot.Config{Tokenizer: engine, Policy: "retrieval"})
	if err != nil {
		return err
	}
	shown := time.Now()
	for i, b := range blocks {
		plan := pilot.Plan(contextpilot.Request{Blocks: []contextpilot.Block{b}})
		req := engines.Request{
			Messages: []engines.Message{{Role: engines.System, Content: demo.System}, {Role: engines.User, Content: plan.Prompt("")}},
			Blocks:   engines.BlockSpans(1, &plan),
		}
		pilot.Observe(contextpilot.Event{Kind: contextpilot.Gone, Request: plan.RequestID})
		if err := engine.Warm(ctx, req); err != nil {
			return fmt.Errorf("block %s: %w", b.ID, err)
		}
		if time.Since(shown) > time.Second {
			fmt.Fprintf(progress, "%d of %d blocks\n", i+1, len(blocks))
			shown = time.Now()
		}
	}
	return nil
}
