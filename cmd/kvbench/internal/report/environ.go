package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
)

// Environment writes what a result says of the machine and the program.
func Environment(w io.Writer, e *environ.Environment) error {
	return write(w, func(out *Page) {
		lines := [][2]string{
			{"kvbench", strings.TrimSpace(e.Version + " " + e.Revision)},
			{"go", fmt.Sprintf("%s %s/%s, GOMAXPROCS %d, cgo %t, race %t", e.GoVersion, e.OS, e.Arch, e.GOMAXPROCS,
				e.Cgo,
				e.Race)},
			{"GOGC", e.GOGC}, {"GOMEMLIMIT", e.GOMEMLIMIT},
			{"cpu", fmt.Sprintf("%s, %s", strings.TrimSpace(e.CPU+" "+e.Arch), times(e.Cores, "core"))},
			{"governor", e.Governor}, {"cpu quota", e.CPUQuota}, {"memory", size(e.RAMBytes)}, {"kernel", e.Kernel},
			{"directory", strings.TrimSpace(e.Dir + " " + e.Filesystem)}, {"load", fixed(e.Load1, 2)},
		}
		for _, d := range e.Dependencies {
			lines = append(lines, [2]string{"with", d.Path + " " + d.Version})
		}
		for _, line := range lines {
			if line[1] != "" {
				out.Printf("%-12s %s\n", line[0], line[1])
			}
		}
		out.List("Warnings", e.Warnings...)
	})
}
