package siftwalletdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/btcsuite/btcwallet/walletdb"

	"github.com/siftkv/siftkv/kv"
)

// Name is what walletdb knows the driver by.
const Name = "siftkv"

func init() {
	err := walletdb.RegisterDriver(walletdb.Driver{
		DbType: Name,
		Create: func(args ...any) (walletdb.DB, error) { return openArgs("Create", true, args) },
		Open:   func(args ...any) (walletdb.DB, error) { return openArgs("Open", false, args) },
	})
	if err != nil {
		panic(err)
	}
}

// Create makes a database in a directory that is empty or not there; nil options are [kv.Small]. walletdb.Create calls
// it, by Name.
func Create(dir string, o *kv.Options) (walletdb.DB, error) {
	return openArgs("Create", true, []any{dir, o})
}

// Open opens the database that is in a directory; nil options are [kv.Small]. walletdb.Open calls it, by Name.
func Open(dir string, o *kv.Options) (walletdb.DB, error) {
	return openArgs("Open", false, []any{dir, o})
}

// arguments are those of Create and Open.
type arguments struct {
	dir     string
	options *kv.Options
	wait    bool
	timeout time.Duration // 0: no end
}

func openArgs(function string, create bool, args []any) (walletdb.DB, error) {
	a, err := parseArguments(args)
	if err != nil {
		return nil, fmt.Errorf("%s.%s: %w", Name, function, err)
	}
	return open(a, create)
}

// parseArguments tells arguments apart by their types.
func parseArguments(args []any) (a arguments, err error) {
	const want = "want the directory of the store, a string, and then *kv.Options, a time.Duration to wait for " +
		"the lock, and a bool that is ignored, each at most once"
	seen := map[string]bool{}
	for i, arg := range args {
		kind := fmt.Sprintf("%T", arg)
		if seen[kind] || (i == 0) != (kind == "string") {
			return a, fmt.Errorf("argument %d is a %s: %s", i+1, kind, want)
		}
		seen[kind] = true
		switch arg := arg.(type) {
		case string:
			a.dir = arg
		case *kv.Options:
			a.options = arg
		case time.Duration:
			a.wait, a.timeout = true, arg
		case bool:
		default:
			return a, fmt.Errorf("argument %d is a %s: %s", i+1, kind, want)
		}
	}
	if a.dir == "" {
		return a, errors.New(want)
	}
	if a.options == nil {
		a.options = kv.Small()
	}
	return a, nil
}

// open opens the store and looks what is in it, or makes a database of one that is empty. A crash may leave an empty
// store: there is no database in it, and Create makes one.
func open(a arguments, create bool) (walletdb.DB, error) {
	if !create && (a.options.Objects == nil || isZero(a.options.Objects.Driver())) {
		switch entries, err := os.ReadDir(a.dir); {
		case errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0:
			return nil, walletdb.ErrDbDoesNotExist
		case err != nil:
			return nil, notOne(a.dir, err)
		}
	}
	store, err := openStore(a)
	if err != nil {
		return nil, err
	}
	there, err := checkFormat(store, a.dir)
	switch {
	case err != nil:
	case !create && !there:
		err = walletdb.ErrDbDoesNotExist
	case create && there:
		err = walletdb.ErrDbExists
	case create:
		err = store.Set([]byte{kindFormat}, []byte{formatVersion}, kv.Sync)
	}
	if err != nil {
		return nil, firstError(err, store.Close())
	}
	return newDB(store), nil
}

// isZero tells a driver of no object store: a nil *objects.Config has it.
func isZero[T comparable](v T) bool { return v == *new(T) }

// firstError returns an error of walletdb as it is, for those who compare it.
func firstError(first, second error) error {
	if second == nil {
		return first
	}
	return errors.Join(first, second)
}

func notOne(dir string, err error) error {
	return fmt.Errorf("%w: siftkv: %s: %w", walletdb.ErrInvalid, dir, err)
}

func openStore(a arguments) (store *kv.DB, err error) {
	if !a.wait {
		store, err = kv.Open(a.dir, a.options)
	} else {
		ctx := context.Background()
		if a.timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, a.timeout)
			defer cancel()
		}
		store, err = kv.OpenContext(ctx, a.dir, a.options)
	}
	switch info, statErr := os.Stat(a.dir); {
	case err == nil:
		return store, nil
	case errors.Is(err, kv.ErrLocked):
		return nil, fmt.Errorf("%w: %w", walletdb.ErrDbAlreadyOpen, err)
	case errors.Is(err, kv.ErrForeignDirectory):
		return nil, notOne(a.dir, err)
	case statErr == nil && !info.IsDir():
		return nil, notOne(a.dir, fmt.Errorf("it is a file, as databases of other drivers are: %w", err))
	}
	return nil, fmt.Errorf("walletdb: siftkv: %w", err)
}

// checkFormat reports whether there is a database in a store. It refuses a store of somebody else's, and
// a later version of this one's.
func checkFormat(store *kv.DB, dir string) (there bool, err error) {
	version, err := store.Get([]byte{kindFormat})
	switch {
	case err == nil && len(version) == 1 && version[0] == formatVersion:
		return true, nil
	case err == nil:
		return false, notOne(dir, fmt.Errorf("the format of the database is %x: want %d", version, formatVersion))
	case !errors.Is(err, kv.ErrNotFound):
		return false, err
	}
	it, err := store.NewIter(nil)
	if err != nil {
		return false, err
	}
	foreign := it.First()
	if err := it.Close(); err != nil {
		return false, err
	}
	if foreign {
		return false, notOne(dir, errors.New("the store is not a wallet's"))
	}
	return false, nil
}
