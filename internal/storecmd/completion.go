package storecmd

import (
	"github.com/alecthomas/kong"

	"github.com/siftkv/siftkv/internal/cli"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help shows how to use the script.
func (completionCommand) Help() string {
	return `Examples:
  source <(siftkv completion bash)
  siftkv completion fish > ~/.config/fish/completions/siftkv.fish`
}

// Run prints the script.
func (c *completionCommand) Run(p *program, app *kong.Kong) error {
	return cli.Completion(p.out, app, c.Shell)
}
