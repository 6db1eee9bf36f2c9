// Package environ describes the machine and the program that produced a
// result, with warnings about what makes its times less trustworthy.
package environ

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/internal/racebuild"
)

// An Environment is the circumstances of one run. What a platform does not tell
// is empty or zero.
type Environment struct {
	Argv         []string  `json:"argv"`
	Started      time.Time `json:"started"`
	Version      string    `json:"version"`  // of the main module
	Revision     string    `json:"revision"` // of its source; "-dirty" if changed since
	Dependencies []Module  `json:"dependencies"`
	GoVersion    string    `json:"go_version"`
	OS           string    `json:"os"`
	Arch         string    `json:"arch"`
	Cgo          bool      `json:"cgo"`
	Race         bool      `json:"race"`
	GOMAXPROCS   int       `json:"gomaxprocs"`
	GOGC         string    `json:"gogc"`       // the variable; empty if unset
	GOMEMLIMIT   string    `json:"gomemlimit"` // the variable; empty if unset
	Cores        int       `json:"cores"`
	CPU          string    `json:"cpu"`
	RAMBytes     int64     `json:"ram_bytes"`
	Kernel       string    `json:"kernel"`
	Dir          string    `json:"dir"`                  // where the stores were
	Filesystem   string    `json:"filesystem"`           // of Dir
	Load1        float64   `json:"load_1min"`            // load average at the start
	Governor     string    `json:"governor,omitempty"`   // of the processor's frequency
	CPUQuota     string    `json:"cpu_quota,omitempty"`  // of the control group, in cores
	OnBattery    bool      `json:"on_battery,omitempty"` // no mains
	Warnings     []string  `json:"warnings"`
}

// A Module is a dependency that a result depends on.
type Module struct {
	Path    string `json:"path"`
	Version string `json:"version"`
}

// measured are the dependencies whose version a result should name.
var measured = []string{
	"github.com/cockroachdb/pebble/v2", "github.com/dgraph-io/badger/v4", "github.com/syndtr/goleveldb",
	"go.etcd.io/bbolt",
	"github.com/klauspost/compress", "github.com/golang/snappy",
	"github.com/DataDog/zstd", "github.com/cespare/xxhash/v2",
}

// Capture describes this process, started as argv, that keeps its stores in dir.
func Capture(argv []string, dir string) Environment {
	e := Environment{
		Argv: argv, Started: time.Now().UTC().Truncate(time.Second),
		GoVersion: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, Race: racebuild.Enabled,
		GOMAXPROCS: runtime.GOMAXPROCS(0), Cores: runtime.NumCPU(),
		GOGC: os.Getenv("GOGC"), GOMEMLIMIT: os.Getenv("GOMEMLIMIT"),
		Dir: dir,
	}
	e.Version, e.Revision, e.Cgo, e.Dependencies = build()
	e.machine()
	e.Warnings = e.warnings()
	return e
}

// Version returns the version and revision of the program in one line.
func Version() string {
	version, revision, _, _ := build()
	return fmt.Sprintf("kvbench %s (revision %s, %s %s/%s)", version, revision, runtime.Version(), runtime.GOOS,
		runtime.GOARCH)
}

// build reads what the linker recorded. A program started with "go run" has no
// revision.
func build() (version, revision string, cgo bool, deps []Module) {
	version, revision = "unknown", "unknown"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version, revision, false, nil
	}
	if info.Main.Version != "" {
		version = info.Main.Version
	}
	dirty := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value
		case "vcs.modified":
			dirty = s.Value == "true"
		case "CGO_ENABLED":
			cgo = s.Value == "1"
		}
	}
	if dirty {
		revision += "-dirty"
	}
	for _, path := range measured {
		for _, d := range info.Deps {
			if d.Path == path {
				deps = append(deps, Module{d.Path, d.Version})
			}
		}
	}
	return version, revision, cgo, deps
}

func (e *Environment) warnings() []string {
	w := bench.Remarks{}
	w.If(e.Filesystem == "tmpfs" || e.Filesystem == "ramfs",
		"%s is on %s: reads never reach a disk; choose another directory with --dir", e.Dir, e.Filesystem)
	w.If(e.Race, "built with -race: times are several times too long")
	w.If(e.Load1 > 0.5, "load average %.2f at the start: something else was running (or the compiler just was)",
		e.Load1)
	w.If(e.OnBattery, "on battery: the processor may be slowed down")
	w.If(e.Governor != "" && e.Governor != "performance",
		"the processor's frequency follows the governor %s: times depend on what ran before", e.Governor)
	w.If(e.CPUQuota != "", "a quota of %s cores: the process is stopped now and then", e.CPUQuota)
	w.If(e.GOMAXPROCS < 2, "GOMAXPROCS is 1: background work and lookups share one core")
	return w
}

// String describes the machine in one line.
func (e *Environment) String() string {
	parts := []string{
		e.CPU, fmt.Sprintf("%d cores (GOMAXPROCS %d)", e.Cores, e.GOMAXPROCS),
		fmt.Sprintf("%.1f GiB RAM", float64(e.RAMBytes)/(1<<30)),
		e.OS + "/" + e.Arch + " " + e.Kernel, e.Filesystem,
		e.GoVersion, fmt.Sprintf("load %.2f", e.Load1), "revision " + e.Revision,
	}
	known := parts[:0]
	for _, p := range parts {
		if p = strings.TrimSpace(p); p != "" {
			known = append(known, p)
		}
	}
	return strings.Join(known, " · ")
}
