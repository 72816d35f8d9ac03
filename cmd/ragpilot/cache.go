package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/internal/lab/figures"
)

func newCache() *cobra.Command {
	return newGroup("cache", "Look at what --cache-dir keeps, and delete it",
		`Cache is about the folder that --cache-dir names for a model in this process: its keys and values, which hold the
texts of prompts and answers in another form.`, newCacheList(), newCacheRemove())
}

func newCacheList() *cobra.Command {
	return &cobra.Command{
		Use:   "ls DIR",
		Short: "List models, blocks and damage, with every checksum checked",
		Long: `Ls reads all of the folder, also while an engine uses it. A block is the keys and values of 16 tokens. Damaged
blocks do no harm: an engine computes them again. Exit status: 0, also with damage; 1 if the folder cannot be read.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := local.InspectDisk(args[0])
			if err != nil {
				return err
			}
			return printCache(cmd.OutOrStdout(), all)
		},
	}
}

func printCache(out io.Writer, all []local.DiskContents) error {
	w := figures.LeftTable(out)
	fmt.Fprintln(w, "FOLDER\tMODEL\tKERNEL\tFORMAT\tBLOCKS\tBYTES\tDAMAGED\tUNFINISHED")
	for _, c := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\n", c.Folder, c.Model, c.Kernel, c.Format, c.Blocks, c.Bytes, c.Damaged, c.Temp)
	}
	return w.Flush()
}

func newCacheRemove() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "rm DIR (FOLDER | --all)",
		Short: "Delete what engines have written: one FOLDER of the list, or all",
		Long: `Rm deletes the files of one line of ls, or of all. Files that no engine wrote stay. It is refused while an engine
writes to the folder.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case all && len(args) == 2:
				return fmt.Errorf("--all and %s: want one of them", args[1])
			case all:
				return local.RemoveDisk(args[0], "")
			case len(args) == 1 || args[1] == "":
				return errors.New("want a FOLDER of ragpilot cache ls, or --all")
			}
			return local.RemoveDisk(args[0], args[1])
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "delete those of all models")
	return cmd
}
