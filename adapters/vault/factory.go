package siftvault

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/vault/sdk/physical"

	"github.com/siftkv/siftkv/kv"
)

// New is a physical.Factory. The configuration has "path", the directory of the store, which is made if it is not
// there; every other name in it is one of kv.ParseOptions, such as MemoryLimit = "256MiB". Without a MemoryLimit,
// CacheSize, MemtableSize and MaxMemtables the memory is that of kv.Small. The logger, which may be nil, receives what
// the store says about background work. The backend is a *Backend: close it.
func New(conf map[string]string, logger hclog.Logger) (physical.Backend, error) {
	path := conf["path"]
	if path == "" {
		return nil, errors.New(`vault: the configuration has no "path": set it to the directory of the store`)
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(conf)) {
		if name != "path" {
			fmt.Fprintf(&text, "%s = %s\n", name, conf[name])
		}
	}
	o, err := kv.ParseOptions(text.String())
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	if o.InMemory || o.ReadOnly {
		return nil, errors.New("vault: a backend is on disk and written to: InMemory and ReadOnly are not for it")
	}
	if o.MemoryLimit == 0 && o.CacheSize == 0 && o.MemtableSize == 0 && o.MaxMemtables == 0 {
		small := kv.Small()
		o.MemoryLimit, o.MemtableSize = small.MemoryLimit, small.MemtableSize
	}
	if logger != nil {
		o.Logger = newLogger(logger)
	}
	db, err := kv.Open(path, o)
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	return &Backend{db}, nil
}
