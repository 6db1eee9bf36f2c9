package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/siftkv/siftkv/internal/bench"
	"github.com/siftkv/siftkv/internal/bench/environ"
)

// Environment writes what a result says of the machine and the program.
func Environment(w io.Writer, e *environ.Environment) error {
	var out bytes.Buffer
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&out, "%-12s %s\n", name, value)
		}
	}
	line("kvbench", strings.TrimSpace(e.Version+" "+e.Revision))
	line("go", fmt.Sprintf("%s %s/%s, GOMAXPROCS %d, cgo %t, race %t", e.GoVersion, e.OS, e.Arch, e.GOMAXPROCS, e.Cgo,
		e.Race))
	for _, v := range [][2]string{{"GOGC", e.GOGC}, {"GOMEMLIMIT", e.GOMEMLIMIT}} {
		line(v[0], v[1])
	}
	line("cpu", fmt.Sprintf("%s, %s", strings.TrimSpace(e.CPU+" "+e.Arch), times(e.Cores, "core")))
	line("governor", e.Governor)
	line("cpu quota", e.CPUQuota)
	line("memory", bench.Size(e.RAMBytes).String())
	line("kernel", e.Kernel)
	line("directory", strings.TrimSpace(e.Dir+" "+e.Filesystem))
	line("load", fmt.Sprintf("%.2f", e.Load1))
	for _, d := range e.Dependencies {
		line("with", d.Path+" "+d.Version)
	}
	writeList(&out, "Warnings", e.Warnings)
	_, err := out.WriteTo(w)
	return err
}
