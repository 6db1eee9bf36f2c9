package pebblefilter_test

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/pebblefilter"
)

func ExampleNew() {
	policy, err := filterpolicy.Parse("blocked:10")
	if err != nil {
		fmt.Println(err)
		return
	}
	opts := &pebble.Options{FS: vfs.NewMem()}
	opts.EnsureDefaults()
	for i := range opts.Levels {
		opts.Levels[i].FilterPolicy = pebblefilter.New(policy)
	}
	db, err := pebble.Open("demo", opts)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(errors.Join(
		db.Set([]byte("apple"), []byte("1"), pebble.Sync),
		db.Set([]byte("cherry"), []byte("2"), pebble.Sync),
		db.Flush(),
	))

	_, _, err = db.Get([]byte("banana")) // between the two: only the filter can tell
	fmt.Println(errors.Is(err, pebble.ErrNotFound), db.Metrics().Filter.Hits)
	fmt.Println(db.Close())
	// Output:
	// <nil>
	// true 1
	// <nil>
}

func ExampleByName() {
	policy, err := filterpolicy.Parse("blocked:12")
	if err != nil {
		fmt.Println(err)
		return
	}
	text := "[Level \"0\"]\n  filter_policy=siftkv.blocked\n"
	var opts pebble.Options
	fmt.Println(opts.Parse(text, &pebble.ParseHooks{NewFilterPolicy: pebblefilter.ByName(policy)}))
	fmt.Println(opts.Levels[0].FilterPolicy.Name())
	// Output:
	// <nil>
	// siftkv.blocked
}
