package main

import (
	_ "embed" // the words
	"strings"
	"sync"

	"github.com/alecthomas/kong"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/compare"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/readamp"
	"github.com/siftkv/siftkv/internal/cli"
)

//go:embed texts.txt
var textsFile string

// texts are the words of the help. The worker, whose memory is measured, does not read them.
var texts = sync.OnceValue(func() *cli.Texts { return cli.ParseTexts(textsFile) })

// vars returns the words that tags of flags refer to.
func vars() kong.Vars {
	return kong.Vars{
		"version": environ.Version(), "compressions": strings.Join(bench.Compressions, ", "),
		"objectfilters": objectFilters, "room": "", "tmp": " (default: the system's temporary directory)",
		"workloads": strings.Join(compare.Workloads(), ","), "five": readampFilters,
		"readampengines": strings.Join(readamp.Engines(), ","),
		"compactions":    list(engine.CompactionStyles), "style": engine.CompactionStyles[0],
	}
}

func list(names []string) string { return strings.Join(names, ", ") }

// helps returns the help texts by the name of the flag, or of the command and the flag.
func helps() map[string]string {
	lists := strings.NewReplacer(
		"${workloadlist}", list(compare.Workloads()), "${readampengines}", list(readamp.Engines()),
		"${compared}", list(compared), "${largeengines}", list(compare.LargeEngines()),
		"${peers}", list(engine.Peers()),
		"${usualvariant}", compare.UsualVariant,
		"${coldvariants}", strings.Join(coldVariants, " "), "${families}", families, "${rangefamilies}", rangeFamilies)
	filled := map[string]string{}
	for name, text := range texts().Helps {
		filled[name] = lists.Replace(text)
	}
	return filled
}
