package main

import (
	"github.com/alecthomas/kong"

	"github.com/siftkv/siftkv/internal/cli"
)

// completionCommand is the command line of kvbench completion.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help shows how to use the script.
func (completionCommand) Help() string {
	return `Examples:
  source <(kvbench completion bash)
  kvbench completion fish > ~/.config/fish/completions/kvbench.fish`
}

// Run prints the script.
func (c *completionCommand) Run(p *program, app *kong.Kong) error {
	return cli.Completion(p.stdout, app, c.Shell)
}
