package cli

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

func TestCompletionOffersCommandsFlagsAndValues(t *testing.T) {
	var commands struct {
		Quiet   bool   `short:"q"`
		Format  string `short:"f" enum:"text,hex" default:"text"`
		Measure struct {
			Progress string `default:"auto" enum:"auto,plain" help:"It's progress."`
			Secret   bool   `hidden:""`
		} `cmd:"" help:"Measures."`
		Show struct {
			JSON  bool   `name:"json"`
			Shape string `arg:"" enum:"round,square"`
		} `cmd:"" help:"Shows."`
		Trace struct {
			Make struct {
				Size int
			} `cmd:""`
			Replay struct{} `cmd:""`
		} `cmd:""`
		Help struct {
			Command []string `arg:"" optional:""`
		} `cmd:""`
		Worker struct{} `cmd:"" hidden:""`
	}
	app, err := kong.New(&commands, kong.Name("tool"))
	require.NoError(t, err)
	for _, shell := range Shells {
		var out bytes.Buffer
		require.NoError(t, Completion(&out, app, shell))
		for _, word := range []string{"measure", "show", "progress", "json", "plain"} {
			require.Contains(t, out.String(), word, shell)
		}
		require.NotContains(t, out.String(), "worker")
		require.NotContains(t, out.String(), "secret")
	}

	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash to run the script")
	}
	var script bytes.Buffer
	require.NoError(t, Completion(&script, app, "bash"))
	for line, want := range map[string]string{
		"tool me": "measure", "tool measure --pro": "--progress", "tool measure --progress pl": "plain",
		"tool sh": "show", "tool --qu": "--quiet", "tool -q me": "measure", "tool --format h": "hex",
		"tool --format hex sho": "show", "tool -f hex sho": "show", "tool measure --q": "--quiet",
		"tool trace ma": "make", "tool -q trace make --si": "--size", "tool trace make --for": "--format",
		"tool --format = he": "hex", "tool --format=he": "--format=hex", "tool --format = hex mea": "measure",
		"tool show --json sq": "square", "tool trace replay ma": "", "tool measure --progress = pl": "plain",
		"tool measure --progress =": "auto plain", "tool help me": "measure", "tool help trace ma": "make",
	} {
		words := strings.Split(line, " ")
		run := script.String() + "COMP_WORDS=(" + strings.Join(words, " ") + "); COMP_CWORD=" +
			string(rune('0'+len(words)-1)) + "; _tool; echo ${COMPREPLY[@]}\n"
		got, err := exec.Command(bash, "--norc", "-c", run).CombinedOutput()
		require.NoError(t, err, string(got))
		require.Equal(t, want, strings.TrimSpace(string(got)), line)
	}
}
