// Package settings is the configuration of `ragpilot serve`. A [Source] puts a [Config] together from a file, the environment and
// flags; [Config.Validate] reports every mistake in it, [Config.Warnings] what is valid and may surprise.
//
//	cfg, err := settings.Source{File: "ragpilot.yaml", Env: os.LookupEnv}.Load()
//	live := settings.NewLive(cfg)
//
// What can change without a restart is in [Reloadable]; a [Live] holds the present one for everything that needs it.
//
// Only package sidecar, package server and the command import this package: what the parts of the sidecar need they get as
// options, so that each can be used and tested without the configuration of all.
package settings
