package cli

import (
	"strings"

	"github.com/alecthomas/kong"
)

// Helps returns an option of kong. A command or a flag with the help ${NAME} and nothing else gets the text of that
// name, which may contain variables of kong. Long texts are no variables themselves: for each flag, kong goes over what
// all variables say.
func Helps(texts map[string]string) kong.Option {
	fill := func(help *string, tag *kong.Tag) {
		name := strings.TrimSuffix(strings.TrimPrefix(*help, "${"), "}")
		if tag == nil || *help != "${"+name+"}" {
			return
		}
		if _, own := tag.Vars[name]; own { // such a variable says something else here
			return
		}
		if text, ok := texts[name]; ok {
			*help = text
		}
	}
	return kong.PostBuild(func(app *kong.Kong) error {
		return kong.Visit(app.Model.Node, func(v kong.Visitable, next kong.Next) error {
			switch v := v.(type) {
			case *kong.Node:
				fill(&v.Help, v.Tag)
			case *kong.Value:
				fill(&v.Help, v.Tag)
			}
			return next(nil)
		})
	})
}

// examples returns an option of kong that ends the help of each command with its details and its examples.
func (p *Program) examples() kong.Option {
	return kong.PostBuild(func(app *kong.Kong) error {
		offered(app, func(n *kong.Node) {
			name := pathOf(n)
			n.Detail = strings.TrimSpace(p.Details[name] + "\n\n" + n.Detail)
			lines := p.Examples[name]
			if lines == "" {
				lines = strings.ReplaceAll(standardExamples[name], "NAME", p.Name)
			}
			if lines != "" {
				n.Detail += "\n\nExamples:\n  " + strings.ReplaceAll(lines, "\n", "\n  ")
				n.Detail = strings.TrimSpace(n.Detail)
			}
		})
		return nil
	})
}
